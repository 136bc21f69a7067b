//! The container images of the lab. There is no registry: images are built with buildah into archives in the cache,
//! and every node imports them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::parts::{self, Part};
use crate::say::Step;
use crate::{command, packages, paths};

/// The image that holds a pod's namespaces.
pub const PAUSE: &str = "localhost/pause:lab";
const PAUSE_SOURCE: &str = include_str!("../parts/pause/pause.rs");

/// A shell and small tools, for people and tests: `kubectl run --image=busybox:lab`.
const BUSYBOX: &str = "docker.io/library/busybox:lab";

/// A client of etcd that writes and reads all the time, for benchmarks.
pub const CLIENT: &str = "localhost/etcd-client:lab";

/// Puts the files of an image into a folder.
type Fill = Box<dyn Fn(&Path) -> Result<()>>;

/// An image to build: its name, what its archive in the cache is called, and what goes into it.
struct Image {
    name: String,
    key: String,
    recipe: String,
    fill: Fill,
}

impl Image {
    fn archive(&self) -> Result<PathBuf> {
        Ok(folder()?.join(format!("{}.tar", self.key)))
    }
}

/// All images that a node needs, the pause image first: no pod starts without it.
fn all() -> Result<Vec<Image>> {
    let mut images = vec![pause(), busybox()?];
    images.extend(parts::ETCDS.into_iter().map(etcd));
    Ok(images)
}

pub fn archives() -> Result<Vec<PathBuf>> {
    all()?.iter().map(Image::archive).collect()
}

/// The archive of the client's image. No node needs it by itself, so it is built when somebody asks for it.
pub fn client_archive() -> Result<PathBuf> {
    parts::build_if_missing(&parts::CLIENT)?;
    let image = client();
    let archive = image.archive()?;
    if !archive.exists() {
        build(&image).with_context(|| format!("building the image {}", image.name))?;
    }
    Ok(archive)
}

pub fn build_missing() -> Result<()> {
    let step = Step::start("images");
    let mut built = Vec::new();
    for image in all()? {
        if !image.archive()?.exists() {
            build(&image).with_context(|| format!("building the image {}", image.name))?;
            built.push(image.name);
        }
    }
    step.done(&if built.is_empty() { "all in the cache".to_owned() } else { format!("built {}", built.join(", ")) });
    Ok(())
}

/// As the official image is: three programs in /usr/local/bin, no shell, no user of its own.
fn etcd(part: &'static Part) -> Image {
    let programs = ["etcd", "etcdctl", "etcdutl"];
    let copies = programs.map(|program| format!("COPY {program} /usr/local/bin/{program}\n")).concat();
    Image {
        name: format!("quay.io/coreos/etcd:v{}", part.version),
        key: part.key(),
        recipe: format!(
            "FROM scratch\nENV PATH=/usr/local/bin:/usr/bin:/bin\n{copies}EXPOSE 2379 2380\nCMD [\"/usr/local/bin/etcd\"]\n"
        ),
        fill: Box::new(move |folder| {
            programs.into_iter().try_for_each(|program| copy(&part.bin()?.join(program), &folder.join(program)))
        }),
    }
}

fn client() -> Image {
    Image {
        name: CLIENT.to_owned(),
        key: parts::CLIENT.key(),
        recipe: "FROM scratch\nCOPY client /client\nENTRYPOINT [\"/client\"]\n".to_owned(),
        fill: Box::new(|folder| copy(&parts::CLIENT.bin()?.join("client"), &folder.join("client"))),
    }
}

fn pause() -> Image {
    Image {
        name: PAUSE.to_owned(),
        key: format!("pause-{}", digest(PAUSE_SOURCE.as_bytes())),
        recipe: "FROM scratch\nCOPY pause /pause\nENTRYPOINT [\"/pause\"]\n".to_owned(),
        fill: Box::new(|folder| {
            let (source, program) = (folder.join("pause.rs"), folder.join("pause"));
            std::fs::write(&source, PAUSE_SOURCE)?;
            let small = ["-Ctarget-feature=+crt-static", "-Copt-level=z", "-Cpanic=abort", "-Cstrip=symbols"];
            let (source, program) = (source.display().to_string(), program.display().to_string());
            command::run("rustc", ["--edition=2024", "-o", &program, &source].into_iter().chain(small)).map(drop)
        }),
    }
}

fn busybox() -> Result<Image> {
    let program = Path::new(packages::BUSYBOX);
    let content = std::fs::read(program).with_context(|| format!("reading {}", program.display()))?;
    Ok(Image {
        name: BUSYBOX.to_owned(),
        key: format!("busybox-{}", digest(&content)),
        recipe: "FROM scratch\nCOPY busybox /bin/busybox\nRUN [\"/bin/busybox\", \"--install\", \"-s\", \"/bin\"]\nCMD [\"sh\"]\n"
            .to_owned(),
        fill: Box::new(move |folder| copy(program, &folder.join("busybox"))),
    })
}

fn folder() -> Result<PathBuf> {
    Ok(paths::cache()?.join("images"))
}

fn digest(content: &[u8]) -> String {
    Sha256::digest(content).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to).map(drop).with_context(|| format!("copying {}", from.display()))
}

/// Builds an image in a folder of its own. The archive appears in the cache at the very end, whole.
fn build(image: &Image) -> Result<()> {
    let work = folder()?.join(format!("building-{}", std::process::id()));
    let context = work.join("context");
    std::fs::create_dir_all(&context).with_context(|| format!("creating {}", context.display()))?;
    (image.fill)(&context)?;
    let recipe = work.join("Dockerfile");
    std::fs::write(&recipe, &image.recipe)?;
    let unfinished = work.join("image.tar");

    let (storage, state) =
        (format!("--root={}/storage", work.display()), format!("--runroot={}/state", work.display()));
    let (recipe, context) = (recipe.display().to_string(), context.display().to_string());
    let destination = format!("docker-archive:{}:{}", unfinished.display(), image.name);
    let buildah = ["--storage-driver=vfs", &storage, &state];
    let bud = ["bud", "--quiet", "--isolation=chroot", "--tag", &image.name, "--file", &recipe, &context];
    command::run("buildah", buildah.into_iter().chain(bud))?;
    command::run("buildah", buildah.into_iter().chain(["push", "--quiet", &image.name, &destination]))?;
    std::fs::rename(&unfinished, image.archive()?).context("moving the image into the cache")?;
    std::fs::remove_dir_all(&work).with_context(|| format!("removing {}", work.display()))
}
