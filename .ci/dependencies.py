"""Checks what the program is built from: licences that may be shipped, where crates come from, the oldest Rust they
need, and that nothing needs a C compiler (the static build must not). Reads Cargo's own metadata and `.deny.toml`;
needs no network and nothing installed. `cargo deny`, where it is installed, checks advisories and more besides.

Usage: dependencies.py
"""

import json
import re
import subprocess
import sys
import tomllib

# Crates by which others compile C or look for a system's libraries.
C_BUILDERS = {"cc", "cmake", "bindgen", "pkg-config", "vcpkg"}


def licence_allowed(expression, allowed):
    """Whether an SPDX expression can be met by allowed licences. `/` is an old spelling of OR."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))
    position = 0

    def term():
        nonlocal position
        token = tokens[position]
        position += 1
        if token == "(":
            value = either()
            position += 1
            return value
        name = token
        if position < len(tokens) and tokens[position] == "WITH":
            name = f"{token} WITH {tokens[position + 1]}"
            position += 2
        return name in allowed or token in allowed

    def both():
        nonlocal position
        value = term()
        while position < len(tokens) and tokens[position] == "AND":
            position += 1
            value = term() and value
        return value

    def either():
        nonlocal position
        value = both()
        while position < len(tokens) and tokens[position] == "OR":
            position += 1
            value = both() or value
        return value

    return either()


def version(text):
    return tuple(int(part) for part in (text.split(".") + ["0", "0"])[:3])


def shipped_crates():
    """Name and version of what the program is built from, build scripts' own included, tests' not.
    Cargo's metadata lists optional crates that no feature turns on, too; its tree does not."""
    command = ["cargo", "tree", "--offline", "--locked", "--edges", "normal,build", "--prefix", "none"]
    command += ["--target", "x86_64-unknown-linux-musl", "--target", "aarch64-apple-darwin"]
    tree = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {tuple(line.split(" ")[:2]) for line in tree.splitlines() if line.strip()}


def main():
    with open(".deny.toml", "rb") as file:
        rules = tomllib.load(file)
    allowed = set(rules["licenses"]["allow"])
    registries = {f"registry+{address}" for address in rules["sources"]["allow-registry"]}
    banned = {entry["crate"] for entry in rules["bans"]["deny"]}
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--offline"]
    metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    shipped = shipped_crates()
    packages = {package["id"]: package for package in metadata["packages"]}
    ours = packages[metadata["resolve"]["root"]]
    problems = []
    for identity, package in packages.items():
        name = f"{package['name']} {package['version']}"
        is_shipped = (package["name"], f"v{package['version']}") in shipped
        if identity == ours["id"]:
            continue
        if package["source"] not in registries:
            problems.append(f"{name}: comes from {package['source']}")
        if is_shipped and not licence_allowed(package["license"] or "none", allowed):
            problems.append(f"{name}: licence {package['license']!r} is not in .deny.toml")
        if package["name"] in banned:
            problems.append(f"{name}: is banned in .deny.toml")
        if package["rust_version"] and version(package["rust_version"]) > version(ours["rust_version"]):
            problems.append(f"{name}: needs Rust {package['rust_version']}")
        if is_shipped and package["name"] in C_BUILDERS:
            problems.append(f"{name}: compiles C or looks for system libraries; the static build cannot")
    for problem in problems:
        print(problem)
    print(f"{len(packages) - 1} crates, {len(shipped) - 1} of them in the program; {len(problems)} problem(s)")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
