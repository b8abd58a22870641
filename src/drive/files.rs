//! Which files belong to a document: the project file, and the actions beside it.
