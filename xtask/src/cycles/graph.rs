//! The import graph: imports and paths, resolved to the files that define the names.

use super::modules::{Import, Module, Modules};
use std::collections::{BTreeMap, BTreeSet};

/// Edges from file to file, with the names that cause an edge and the first line of each.
pub type Edges = BTreeMap<(usize, usize), BTreeMap<String, usize>>;

/// The target of a path.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Module(usize),
    /// An item that this module defines, possibly by a macro.
    Item(usize),
    /// Another crate.
    Outside,
}

/// Returns the edges of a crate.
///
/// In a file that lists modules (`lib.rs`, `mod.rs`), a `pub use` is a table of contents and not an
/// edge, unless the file itself uses the items that it lists.
pub fn edges(modules: &Modules) -> Edges {
    let mut edges = Edges::new();
    for (id, module) in modules.modules.iter().enumerate() {
        let mut add = |place: Place, line: usize, name: String| {
            let (Place::Module(to) | Place::Item(to)) = place else {
                return;
            };
            let ends = (module.file, modules.modules[to].file);
            if ends.0 != ends.1 {
                edges.entry(ends).or_default().entry(name).or_insert(line);
            }
        };
        let counts =
            |import: &Import| import.name.is_some() && !(import.public && modules.lists(module));
        let imports = || module.imports.iter().filter(|import| counts(import));
        // An imported name is not counted again where it is used.
        let new = |name: &str, place: Place| {
            matches!(place, Place::Module(_)) || !imports().any(|i| i.name.as_deref() == Some(name))
        };
        for import in imports() {
            add(modules.resolve(id, &import.path), import.line, import.path.join("::"));
        }
        for mention in &module.mentions {
            if new(&mention.path[0], modules.resolve(id, &mention.path[..1])) {
                add(modules.resolve(id, &mention.path), mention.line, mention.path.join("::"));
            }
        }
        for (word, &line) in &module.words {
            let place = modules.resolve(id, std::slice::from_ref(word));
            if matches!(place, Place::Item(_)) && new(word, place) {
                add(place, line, word.clone());
            }
        }
    }
    edges
}

impl Modules {
    /// Returns whether the file of the module is one that lists others.
    fn lists(&self, module: &Module) -> bool {
        let file = &self.files[module.file];
        file == "lib.rs" || file == "main.rs" || file.ends_with("/mod.rs")
    }

    fn resolve(&self, from: usize, path: &[String]) -> Place {
        self.follow(from, path, &mut BTreeSet::new())
    }

    /// Follows a path from a module as far as it can be resolved.
    fn follow(&self, from: usize, path: &[String], seen: &mut BTreeSet<(usize, String)>) -> Place {
        let mut place = Place::Module(from);
        for (at, name) in path.iter().enumerate() {
            let Place::Module(module) = place else {
                return place;
            };
            place = match name.as_str() {
                "crate" => Place::Module(0),
                "self" => place,
                "super" => Place::Module(self.modules[module].parent),
                _ => match self.lookup(module, name, seen) {
                    Some(place) => place,
                    None if at == 0 => Place::Outside,
                    None => Place::Item(module),
                },
            };
        }
        place
    }

    /// Returns the target of a name in a module: a child, an item, or the target of an import.
    fn lookup(
        &self,
        module: usize,
        name: &str,
        seen: &mut BTreeSet<(usize, String)>,
    ) -> Option<Place> {
        let here = &self.modules[module];
        if let Some(&child) = here.children.get(name) {
            return Some(Place::Module(child));
        }
        if here.items.contains(name) {
            return Some(Place::Item(module));
        }
        if !seen.insert((module, name.to_string())) {
            return None;
        }
        if let Some(import) = here.imports.iter().find(|i| i.name.as_deref() == Some(name)) {
            return Some(self.follow(module, &import.path, seen));
        }
        let globs = here.imports.iter().filter(|i| i.name.is_none());
        let opened = globs.map(|glob| self.follow(module, &glob.path, seen)).collect::<Vec<_>>();
        opened.into_iter().find_map(|place| match place {
            Place::Module(listed) => self.lookup(listed, name, seen),
            _ => None,
        })
    }
}

/// Returns the strongly connected components of more than one file, by Tarjan's algorithm.
pub fn components(files: usize, edges: &Edges) -> Vec<BTreeSet<usize>> {
    let (order, low) = (vec![None; files], vec![0; files]);
    let mut search = Search { edges, order, low, stack: Vec::new(), visited: 0, found: Vec::new() };
    for file in 0..files {
        if search.order[file].is_none() {
            search.visit(file);
        }
    }
    search.found
}

struct Search<'a> {
    edges: &'a Edges,
    order: Vec<Option<usize>>,
    low: Vec<usize>,
    stack: Vec<usize>,
    visited: usize,
    found: Vec<BTreeSet<usize>>,
}

impl Search<'_> {
    fn visit(&mut self, file: usize) {
        self.order[file] = Some(self.visited);
        self.low[file] = self.visited;
        self.visited += 1;
        self.stack.push(file);
        for &(_, to) in self.edges.keys().filter(|(from, _)| *from == file) {
            match self.order[to] {
                None => {
                    self.visit(to);
                    self.low[file] = self.low[file].min(self.low[to]);
                }
                Some(order) if self.stack.contains(&to) => {
                    self.low[file] = self.low[file].min(order)
                }
                Some(_) => {}
            }
        }
        if self.order[file] == Some(self.low[file])
            && let Some(start) = self.stack.iter().rposition(|&f| f == file)
        {
            let component: BTreeSet<usize> = self.stack.split_off(start).into_iter().collect();
            if component.len() > 1 {
                self.found.push(component);
            }
        }
    }
}
