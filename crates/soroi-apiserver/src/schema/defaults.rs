//! Defaults of structural schemas.

use serde_json::Value;

use super::{Additional, NodeIx, Schema};

impl Schema {
    /// Fills in defaults at and below a node. A null where null is not allowed counts as missing
    /// when there is a default for it.
    pub(super) fn default_node(&self, ix: NodeIx, value: &mut Value) {
        let node = &self.nodes[ix];
        if !node.has_defaults {
            return;
        }
        match value {
            Value::Object(fields) => {
                for (name, property) in &node.properties {
                    let child = &self.nodes[*property];
                    if let Some(default) = &child.default {
                        let here = fields.get(name);
                        if here.is_none() || (here.is_some_and(Value::is_null) && !child.nullable) {
                            fields.insert(name.clone(), default.clone());
                        }
                    }
                    if child.has_defaults
                        && let Some(inner) = fields.get_mut(name)
                    {
                        self.default_node(*property, inner);
                    }
                }
                if let Additional::Schema(additional) = node.additional {
                    let others = fields.iter_mut().filter(|(k, _)| !node.properties.contains_key(*k));
                    for (_, inner) in others {
                        self.default_node(additional, inner);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(ix) = node.items {
                    for item in items {
                        self.default_node(ix, item);
                    }
                }
            }
            _ => {}
        }
    }
}
