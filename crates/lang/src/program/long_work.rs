//! Long work: what takes so long that it must not hold a thread that others wait for. The program that uses this crate says
//! how such work leaves the thread; without that, it is done where it is.

use std::sync::OnceLock;

/// Does work while another thread takes over what waits for this one.
pub type Departure = fn(&mut dyn FnMut());

static DEPARTURE: OnceLock<Departure> = OnceLock::new();

/// Sets how long work leaves a thread, for the whole process. The first one stays.
pub fn set_departure(departure: Departure) {
    DEPARTURE.get_or_init(|| departure);
}

/// Does long work.
pub(crate) fn away(work: &mut dyn FnMut()) {
    match DEPARTURE.get() {
        Some(departure) => departure(work),
        None => work(),
    }
}
