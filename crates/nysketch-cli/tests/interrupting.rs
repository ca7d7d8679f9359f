//! Work that checks for signals only when its result is complete.

mod common;

use common::Folder;
use std::time::Duration;

/// No signal ends this process, so only the check before writing stops the command.
#[test]
fn a_fit_that_was_interrupted_writes_nothing() {
    let f = Folder::new();
    f.ok("generate gmm --rows 20000 --dims 10 --clusters 20 --separation 0.5 -o x.npy");
    f.ok("sketch x.npy -o s.nys");
    let [sketch, model] = ["s.nys", "m.json"].map(|name| f.path(name).into_os_string());
    let words = ["nysketch", "fit", "gmm", "-k", "20", "-o"].map(Into::into);
    let command = words.into_iter().chain([model, sketch]).collect::<Vec<_>>();
    let fit = || {
        std::thread::spawn({
            let command = command.clone();
            move || nysketch_cli::run(command)
        })
    };
    let interrupted = fit();
    // The fit takes a second here.
    std::thread::sleep(Duration::from_millis(50));
    nysketch_cli::interrupt();
    assert_eq!(interrupted.join().unwrap(), 130);
    assert!(!f.path("m.json").exists());
    assert_eq!(fit().join().unwrap(), 0);
    assert!(f.path("m.json").exists());
}
