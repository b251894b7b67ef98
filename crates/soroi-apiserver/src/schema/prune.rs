//! Unknown fields of custom kinds.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::path::Path;
use super::{Additional, Node, NodeIx, Schema, compile_builtin};

/// The schema of `metadata`, which custom kinds share with built-in ones.
fn object_meta() -> &'static Schema {
    static META: OnceLock<Arc<Schema>> = OnceLock::new();
    META.get_or_init(|| {
        use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
        let schema = schemars::schema_for!(ObjectMeta);
        Arc::new(compile_builtin(schema.as_value()))
    })
}

impl Node {
    /// Is a null here taken away? One that has a default is replaced by it later.
    fn drops_null(&self) -> bool {
        !self.nullable && self.default.is_none()
    }
}

impl Schema {
    /// Takes out what the schema does not name. `whole` says that the value is a whole object,
    /// with apiVersion, kind and metadata.
    pub(super) fn prune(
        &self,
        ix: NodeIx,
        value: &mut Value,
        path: &Path<'_>,
        whole: bool,
        unknown: &mut Vec<String>,
    ) -> Result<(), String> {
        let node = &self.nodes[ix];
        match value {
            Value::Object(fields) => {
                let mut gone = Vec::new();
                for (name, inner) in fields.iter_mut() {
                    if whole && matches!(name.as_str(), "apiVersion" | "kind") {
                        continue;
                    }
                    if whole && name == "metadata" {
                        let meta = object_meta();
                        meta.read_typed(meta.root, inner, &path.field(name), "ObjectMeta", unknown)?;
                        continue;
                    }
                    let known = node.properties.get(name).copied();
                    match known.map_or(node.additional, Additional::Schema) {
                        // A null where none is allowed counts as nothing.
                        Additional::Schema(ix) if inner.is_null() && self.nodes[ix].drops_null() => {
                            gone.push(name.clone());
                        }
                        Additional::Schema(ix) => {
                            let place = if known.is_some() { path.field(name) } else { path.key(name) };
                            self.prune(ix, inner, &place, self.nodes[ix].embedded, unknown)?;
                        }
                        Additional::Anything => {}
                        Additional::Nothing if node.preserve_unknown => {}
                        Additional::Nothing => {
                            unknown.push(path.field(name).to_string());
                            gone.push(name.clone());
                        }
                    }
                }
                for name in gone {
                    fields.remove(&name);
                }
            }
            Value::Array(items) => {
                if let Some(ix) = node.items {
                    let embedded = self.nodes[ix].embedded;
                    for (at, item) in items.iter_mut().enumerate() {
                        self.prune(ix, item, &path.item(at), embedded, unknown)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}
