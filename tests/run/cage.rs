//! The cage: what a model that was taken over can reach, and what text can do.
