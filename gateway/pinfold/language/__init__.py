"""Memory as a language: what there is to say of a memory document, and to offer. Pure: a text and
facts about its place come in, values come out; lines and columns count characters from 0."""
