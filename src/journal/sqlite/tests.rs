//! What the store on disk promises beyond that.
