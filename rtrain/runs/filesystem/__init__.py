"""Files and locks of folders that processes share: whole files, plain files, one writer at a time."""
