//! What `grid init` writes: a declaration to start from.

use super::schema;
use crate::words::MeshName;

/// Where the schema lies, as the first line of the starter says.
const SCHEMA: &str = "schemas/mesh.schema.json";

/// The files of a new declaration, relative to its folder: `mesh.toml`, what git leaves out, and the
/// schema with which an editor completes and checks. It loads as it is.
#[must_use]
pub fn starter(name: &MeshName) -> Vec<(&'static str, String)> {
    vec![
        ("mesh.toml", mesh_toml(name)),
        (
            ".gitignore",
            "# What was last sent, and the accounts that were issued: sealed, but not for a repository.\n.grid/\n"
                .to_owned(),
        ),
        (SCHEMA, format!("{:#}\n", schema())),
    ]
}

/// A line that begins with `#` and no space is an example: it is right once the `#` is taken away.
fn mesh_toml(name: &MeshName) -> String {
    format!(
        r#"#:schema ./{SCHEMA}

# All machines of this mesh, and what each of them should be. `grid check` says what is wrong here;
# `grid push` delivers. Files beside this one, `mesh.d/*.toml`, are part of it.

[mesh]
name = "{name}"
grid = ">={version}"

# What every machine has that does not say otherwise.
[defaults]
#user = "grid"          # the login; absent: as ssh_config says, else your own
#become = "sudo"        # how the machine side gains root; absent: not at all

# A machine. Without an address it is found by its name, through ssh_config and DNS.
#[nodes.atlas]
#address = "10.0.0.1"
#tags = ["eu"]          # "@eu" names all machines that carry it

#[nodes.borealis]
#address = "10.0.0.2"

# A provider: it gives others an account. grid mints the accounts, and loads them into it.
#[services.broker]
#node = "atlas"
#provides = {{ kind = "rabbitmq" }}

# A consumer: it is given its account as files and as variables. `grid push borealis` delivers it,
# and tells the broker first.
#[services.billing]
#node = "borealis"
#consumes = ["broker"]
#apply = ["systemctl", "reload-or-restart", "billing"]
#check = ["systemctl", "is-active", "billing"]
#
#[[services.billing.files]]
#path = "/etc/billing/billing.conf"
#content = "queue = invoices\n"
"#,
        version = env!("CARGO_PKG_VERSION")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::load;

    fn written(change: impl Fn(&str) -> String) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in starter(&MeshName::new("prod").unwrap()) {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, change(&content)).unwrap();
        }
        folder
    }

    #[test]
    fn the_starter_is_a_declaration() {
        let folder = written(str::to_owned);
        let mesh = load(folder.path().try_into().unwrap()).unwrap().mesh;
        assert_eq!(mesh.name.as_str(), "prod");
        assert!(mesh.nodes.is_empty() && mesh.services.is_empty());
    }

    #[test]
    fn its_examples_are_right_once_they_are_taken_up() {
        let folder = written(|content| {
            let lines = content.lines().map(|line| match line.strip_prefix('#') {
                Some(example) if !example.starts_with([' ', ':']) => example,
                _ => line,
            });
            lines.collect::<Vec<_>>().join("\n")
        });
        let mesh = load(folder.path().try_into().unwrap())
            .unwrap_or_else(|wrong| panic!("{wrong}"))
            .mesh;
        assert_eq!(mesh.nodes["borealis"].user.as_deref(), Some("grid"));
        assert_eq!(mesh.services["billing"].files.len(), 1);
    }
}
