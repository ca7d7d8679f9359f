//! The paper's experiments: the table does not depend on threads or interruptions; pictures and the
//! page are complete.

mod common;

use common::Folder;
use std::fs;

/// Without the data folder, only the synthetic half of figure 3 is run.
const FIGURE: &str = "reproduce fig3 --quick --trials 1";

#[test]
fn threads_and_interruptions_do_not_show() {
    let f = Folder::new();
    let first = f.json(&format!("{FIGURE} --threads 1 -o one"));
    assert_eq!((&first["new"], &first["failed"]), (&first["fits"], &0.into()), "{first}");
    assert_eq!(first["panels"], serde_json::json!(["fig3-kmeans-synthetic-k20-size"]));
    assert!(first["missing"][0].as_str().unwrap().contains("--data"), "{first}");
    let table = String::from_utf8(f.read("one/trials.csv")).unwrap();
    // Simulates a run that ended in the middle of a line.
    let half = table.len() / 2;
    fs::create_dir(f.path("two")).unwrap();
    fs::write(f.path("two/trials.csv"), &table[..half]).unwrap();
    let rest = f.json(&format!("{FIGURE} --threads 2 -o two"));
    let (new, fits) = (rest["new"].as_u64().unwrap(), rest["fits"].as_u64().unwrap());
    assert!(0 < new && new < fits, "{rest}");
    for file in ["trials.csv", "index.html", "fig3-kmeans-synthetic-k20-size.svg"] {
        assert_eq!(f.read(&format!("one/{file}")), f.read(&format!("two/{file}")), "{file}");
    }
    // No fits remain.
    assert_eq!(f.json(&format!("{FIGURE} -o two"))["new"], 0);

    let risk = |method: &str, size: &str| -> f64 {
        let start = format!("synthetic-k20,kmeans,{method},");
        let line = table.lines().find(|l| {
            let cells: Vec<&str> = l.split(',').collect();
            l.starts_with(&start) && cells[7] == size
        });
        let column = table.lines().next().unwrap().split(',').position(|name| name == "risk");
        line.unwrap().split(',').nth(column.unwrap()).unwrap().parse().unwrap()
    };
    // With 400 landmarks, cells match all rows, and the paper's decoder is within a factor of 8.
    let all = risk("all-rows", "");
    assert!(risk("ours-cells", "400") < 1.01 * all, "{table}");
    assert!(risk("nystrom-uniform", "400") < 8.0 * all, "{table}");
    let png = f.read("one/fig3-kmeans-synthetic-k20-size.png");
    assert!(png.starts_with(b"\x89PNG") && png.len() > 10_000);
    // The page has no external resources.
    let page = String::from_utf8(f.read("one/index.html")).unwrap();
    assert!(page.contains("Nyström, greedy") && page.contains("Missing: cifar10"));
    assert!(!page.contains("href") && !page.contains("src="), "{page}");
}

#[test]
fn what_cannot_be_reproduced_is_reported() {
    let f = Folder::new();
    f.fails(2, "reproduce fig5 -o out", &["fig5", "fig1"]);
    f.fails(2, "reproduce fig3 --quick --trials 0 -o out", &["--trials"]);
    f.write("file", "x");
    f.fails(1, &format!("{FIGURE} -o file"), &["file"]);
    fs::create_dir(f.path("other")).unwrap();
    f.write("other/trials.csv", "a,b\n1,2\n");
    f.fails(1, &format!("{FIGURE} -o other"), &["other/trials.csv", "another folder"]);
    assert_eq!(f.read("other/trials.csv"), b"a,b\n1,2\n");
    // The number of classes differs from the number of rows.
    fs::create_dir(f.path("data")).unwrap();
    f.ok("generate gmm --rows 50 --dims 50 --clusters 2 -o data/cifar10_resnet18_pca50.npy");
    f.ok("generate gmm --rows 40 --dims 3 --clusters 2 -o x.npy --labels data/cifar10_labels.npy");
    let messages = ["cifar10_labels.npy has 40 values", "50 rows"];
    f.fails(1, &format!("{FIGURE} --data data -o out"), &messages);
    f.ok("generate gmm --rows 50 --dims 3 --clusters 2 --force -o data/cifar10_resnet18_pca50.npy");
    f.fails(1, &format!("{FIGURE} --data data -o out"), &["3 columns", "50"]);
    f.fails(2, &format!("{FIGURE} --data nowhere -o out"), &["nowhere", "folder"]);
}
