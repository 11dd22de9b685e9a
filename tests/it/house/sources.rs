//! A crate's modules, as its source files say them, without its test modules: what each names, and
//! what it is called.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Block, ImplItem, Item, ItemMod, ItemUse, Macro, Meta, UseTree};

/// The segments of a path, as in `crate::lock::Guard`.
pub(crate) type Path = Vec<String>;

/// The modules of one crate, by their paths from its root.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// What the other targets of its package call it.
    pub(crate) crate_name: String,
    pub(crate) modules: BTreeMap<Path, Module>,
}

#[derive(Debug, Default)]
pub(crate) struct Module {
    pub(crate) file: String,
    /// What its names stand for. One name may be a module, a type and a function at once.
    pub(crate) names: BTreeMap<String, Vec<Name>>,
    /// What it imports all names of.
    pub(crate) globs: Vec<Path>,
    /// Every path in its code, imports and re-exports among them.
    pub(crate) paths: BTreeSet<Path>,
    /// The types and traits that it defines, outside of functions.
    pub(crate) types: BTreeSet<String>,
}

#[derive(Debug)]
pub(crate) enum Name {
    Item,
    Module,
    Import(Path),
}

impl Sources {
    /// Follows the `mod` declarations from the root file. `files` are the texts of the files by
    /// their names.
    pub(crate) fn read(crate_name: &str, root: &str, files: &BTreeMap<String, String>) -> Self {
        let mut sources = Self { crate_name: crate_name.to_owned(), modules: BTreeMap::new() };
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        Reader { sources: &mut sources, files, here: Vec::new(), folder, functions: 0 }.file(root);
        sources
    }
}

struct Reader<'a> {
    sources: &'a mut Sources,
    files: &'a BTreeMap<String, String>,
    here: Path,
    /// Where the files of the modules that this one declares are.
    folder: String,
    /// How many bodies of functions it is within.
    functions: usize,
}

impl Reader<'_> {
    fn file(&mut self, name: &str) {
        let parsed = syn::parse_file(&self.files[name]).unwrap_or_else(|error| panic!("{name}: {error}"));
        self.module().file = name.to_owned();
        self.visit_file(&parsed);
    }

    fn module(&mut self) -> &mut Module {
        self.sources.modules.entry(self.here.clone()).or_default()
    }

    fn path(&mut self, path: Path) {
        if !path.is_empty() {
            self.module().paths.insert(path);
        }
    }

    fn name(&mut self, name: impl ToString, what: Name) {
        self.module().names.entry(name.to_string()).or_default().push(what);
    }

    /// The paths among the tokens of a macro or an attribute, which need not be an expression.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path = Path::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.path(std::mem::take(&mut path));
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => self.tokens(group.stream()),
                _ => colons = 0,
            }
        }
        self.path(path);
    }

    fn imports(&mut self, tree: &UseTree, mut path: Path) {
        match tree {
            UseTree::Path(step) => {
                path.push(step.ident.to_string());
                self.imports(&step.tree, path);
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.imports(tree, path.clone())),
            UseTree::Glob(_) => self.module().globs.push(path),
            UseTree::Name(name) => self.import(path, &name.ident, &name.ident),
            UseTree::Rename(rename) => self.import(path, &rename.ident, &rename.rename),
        }
    }

    fn import(&mut self, mut path: Path, item: &syn::Ident, called: &syn::Ident) {
        let itself = item == "self" && !path.is_empty();
        let called =
            if itself && called == "self" { path[path.len() - 1].clone() } else { called.to_string() };
        if !itself {
            path.push(item.to_string());
        }
        self.path(path.clone());
        self.name(called, Name::Import(path));
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let (attributes, name, is_type) = match item {
            Item::Const(item) => (&item.attrs, Some(&item.ident), false),
            Item::Enum(item) => (&item.attrs, Some(&item.ident), true),
            Item::Fn(item) => (&item.attrs, Some(&item.sig.ident), false),
            Item::Impl(item) => (&item.attrs, None, false),
            Item::Macro(item) => (&item.attrs, item.ident.as_ref(), false),
            Item::Mod(item) => (&item.attrs, None, false),
            Item::Static(item) => (&item.attrs, Some(&item.ident), false),
            Item::Struct(item) => (&item.attrs, Some(&item.ident), true),
            Item::Trait(item) => (&item.attrs, Some(&item.ident), true),
            Item::Type(item) => (&item.attrs, Some(&item.ident), true),
            Item::Union(item) => (&item.attrs, Some(&item.ident), true),
            Item::Use(item) => (&item.attrs, None, false),
            _ => panic!("an item of an unknown kind in {}", self.module().file),
        };
        if attributes.iter().any(is_for_tests) {
            return;
        }
        if let (Some(name), 0) = (name, self.functions) {
            self.name(name, Name::Item);
            if is_type {
                self.module().types.insert(name.to_string());
            }
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let tests = matches!(item, ImplItem::Fn(item) if item.attrs.iter().any(is_for_tests));
        if !tests {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        let name = item.ident.to_string();
        self.name(&name, Name::Module);
        let here_file = self.module().file.clone();
        let mut here = self.here.clone();
        here.push(name.clone());
        let folder = format!("{}/{name}", self.folder);
        let mut below =
            Reader { sources: self.sources, files: self.files, here, folder: folder.clone(), functions: 0 };
        match &item.content {
            Some((_, items)) => {
                below.module().file = here_file;
                items.iter().for_each(|item| below.visit_item(item));
            }
            None => {
                let candidates = [format!("{folder}.rs"), format!("{folder}/mod.rs")];
                let file = candidates.iter().find(|file| below.files.contains_key(*file));
                below.file(file.unwrap_or_else(|| panic!("{here_file}: no file for mod {name}")));
            }
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.imports(&item.tree, Path::new());
    }

    fn visit_block(&mut self, block: &'ast Block) {
        self.functions += 1;
        visit::visit_block(self, block);
        self.functions -= 1;
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.path(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.visit_path(&called.path);
        self.tokens(called.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.tokens(list.tokens.clone());
        }
    }
}

/// `#[cfg(test)]`, alone or with more that must be so.
fn is_for_tests(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else { return false };
    let condition = list.tokens.to_string().replace(' ', "");
    list.path.is_ident("cfg") && (condition == "test" || condition.starts_with("all(test,"))
}
