//! How long work leaves the thread that other runs, requests and signals wait for.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Does work while another thread of the runtime takes over. A runtime that has one thread does it where it is.
pub(super) fn leave(work: &mut dyn FnMut()) {
    let has_others = Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if has_others { tokio::task::block_in_place(work) } else { work() }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn other_tasks_go_on_while_long_work_is_done() {
        // A failure ends it; the work itself ends at once.
        const PATIENCE: Duration = Duration::from_secs(60);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let (began, work_began) = mpsc::channel();
        let (sender, receiver) = mpsc::channel();
        let worker = runtime.spawn(async move {
            let mut done = false;
            leave(&mut || {
                began.send(()).unwrap();
                done = receiver.recv_timeout(PATIENCE).is_ok();
            });
            done
        });
        work_began.recv_timeout(PATIENCE).unwrap();
        let other = runtime.spawn(async move { sender.send(()) });
        assert!(runtime.block_on(worker).unwrap(), "the only worker was held");
        runtime.block_on(other).unwrap().unwrap();
        // Nothing else could take over here.
        let alone = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut done = false;
        alone.block_on(async { leave(&mut || done = true) });
        assert!(done);
    }
}
