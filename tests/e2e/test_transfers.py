"""Whole transfers over routers that share no subnet with both ends (issue: 'Done when' 2)."""
import os
import re
import shutil
import struct

from lab import Lab, TwoSites, big_file, check, may_give_away, native, routed, run, same_tree, sha256, small_tree, staged, tree_bytes


def carried(router):
    router.stop()
    return router.done().get("counters", {}).get("routed_bytes", 0)


def nothing_came_wrong(receiver):
    """On these networks nothing damages a byte: what is asked for again would be hidden by the hashes, not arrive in time."""
    counters = receiver.done()["counters"]
    wrong = {name: counters[name] for name in ("segments_bad", "session_rejected") if counters[name] != 0}
    check(not wrong, f"{receiver.name}: {wrong}")


def system_controls_congestion(host):
    """Of what leaves a host: whatever tcp chooses within one."""
    wanted = run(*host.prefix, "cat", "/proc/sys/net/ipv4/tcp_congestion_control").stdout.strip()
    sockets = run(*host.prefix, "ss", "-tinHO").stdout.splitlines()
    check(sockets and all(f" {wanted} " in line for line in sockets), f"not {wanted}: {sockets}")


def test_push_usr_share__through_two_routers__identical_and_counted():
    with TwoSites("share") as sites:
        source = sites.lab.directory / "share"
        run("cp", "-a", "/usr/share", source)
        sites.start_routers()
        receiver = sites.receive()
        sender = sites.send("-a", f"{source}/", routed(receiver.uris) + "/share/")
        check(sender.wait() == 0, sender.tail())
        same_tree(source, sites.root / "share")
        system_controls_congestion(sites.west)
        system_controls_congestion(sites.east)
        payload = tree_bytes(source)
        for router in sites.routers:
            check(carried(router) >= payload, f"{router.name} carried less than the payload of {payload}")
        shutil.rmtree(sites.root / "share")
        check(receiver.stop() == 0, receiver.tail())
        nothing_came_wrong(receiver)


def test_pull_usr_share__through_two_routers__identical_and_counted():
    with TwoSites("pull") as sites:
        source = sites.lab.directory / "share"
        run("cp", "-a", "/usr/share", source)
        sites.start_routers()
        server = sites.lab.start_ready(sites.receiver, "serve", "send", "--serve", sites.lab.directory, "-c", sites.receiver_config,
                                       "--insecure")
        target = sites.lab.directory / "pulled"
        target.mkdir()
        puller = sites.lab.start(sites.sender, "pull", "recv", "-a", "-c", sites.sender_config, "--insecure",
                                 routed(server.uris) + "/share/", target)
        check(puller.wait() == 0, puller.tail())
        same_tree(source, target)
        nothing_came_wrong(puller)
        payload = tree_bytes(source)
        for router in sites.routers:
            check(carried(router) >= payload, f"{router.name} carried less than the payload of {payload}")


def test_odd_tree__three_routers__identical():
    with TwoSites("three", middle=1) as sites:
        source = small_tree(sites.lab.directory / "tree")
        sites.start_routers()
        receiver = sites.receive()
        sender = sites.send("-a", f"{source}/", routed(receiver.uris) + "/tree/")
        check(sender.wait() == 0, sender.tail())
        same_tree(source, sites.root / "tree")
        session = next(e for e in sender.events if e["event"] == "session")
        check(len(session["path"]) == 4, f"four hops expected: {session['path']}")


def test_odd_tree__direct_push_and_pull__identical_and_second_run_sends_nothing():
    with Lab("direct") as lab:
        source = small_tree(lab.directory / "tree")
        root = lab.directory / "root"
        root.mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")
        address = native(receiver.uris)
        first = lab.start(None, "send", "send", "-a", "--insecure", f"{source}/", address + "/tree/")
        check(first.wait() == 0, first.tail())
        same_tree(source, root / "tree")
        again = lab.start(None, "send", "send", "-a", "--insecure", f"{source}/", address + "/tree/")
        check(again.wait() == 0, again.tail())
        done = again.done()
        check(done["bytes_sent"] == 0 and done["files_unchanged"] > 300, f"the second run sent something: {done}")
        changed = next(p for p in sorted(source.rglob("f*")) if p.stat().st_size == 70000)
        mode, times = changed.stat().st_mode, changed.stat()
        changed.chmod(0o644)
        changed.write_bytes(b"\0" * 70000)
        changed.chmod(mode & 0o7777)
        os.utime(changed, ns=(0, times.st_mtime_ns))
        os.utime(root / "tree" / changed.relative_to(source), ns=(0, times.st_mtime_ns))
        by_content = lab.start(None, "send", "send", "-a", "--checksum", "--insecure", f"{source}/", address + "/tree/")
        check(by_content.wait() == 0, by_content.tail())
        check(by_content.done()["bytes_sent"] == 70000, f"--checksum sent {by_content.done()}")
        same_tree(source, root / "tree")
        if may_give_away():   # a link that is there with its target, and a new one that a setgid directory gives its group
            link = next(p for p in sorted(source.rglob("*")) if p.is_symlink() and p.lstat().st_uid != 0)
            os.chown(link, 0, 0, follow_symlinks=False)
            shared = source / "shared"
            shared.mkdir()
            os.chown(shared, 0, 2345)
            shared.chmod(0o2775)
            check(lab.start(None, "send", "send", "-a", "--insecure", f"{source}/", address + "/tree/").wait() == 0, "shared")
            (shared / "link").symlink_to("x")
            os.chown(shared / "link", 0, 0, follow_symlinks=False)
            check(lab.start(None, "send", "send", "-a", "--insecure", f"{source}/", address + "/tree/").wait() == 0, "links")
            same_tree(source, root / "tree")
        server = lab.start_ready(None, "serve", "send", "--serve", source, "--listen", "127.0.0.1:0", "--insecure")
        target = lab.directory / "pulled"
        target.mkdir()
        puller = lab.start(None, "pull", "recv", "-a", "--insecure", native(server.uris) + "/", target)
        check(puller.wait() == 0, puller.tail())
        same_tree(source, target)


def test_one_file__named_anew_and_into_a_directory__once_and_uri_file():
    with Lab("file") as lab:
        source = big_file(lab.directory / "data.bin", 30_000_001)
        root = lab.directory / "root"
        (root / "there").mkdir(parents=True)
        uri_file = lab.directory / "uris"
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure", "--once",
                                   "--uri-file", uri_file)
        address = uri_file.read_text().split()[0]
        check(address in receiver.uris, f"{address} is not one of {receiver.uris}")
        sender = lab.start(None, "send", "send", "--insecure", source, address + "/new.bin")
        check(sender.wait() == 0, sender.tail())
        check(receiver.wait() == 0, receiver.tail())
        check(not uri_file.exists(), "the uri file outlived the receiver")
        check(sha256(source) == sha256(root / "new.bin"), "new.bin differs")
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure", "--once")
        sender = lab.start(None, "send", "send", "--insecure", source, native(receiver.uris) + "/there/")
        check(sender.wait() == 0, sender.tail())
        check(receiver.wait() == 0, receiver.tail())
        check(sha256(source) == sha256(root / "there" / "data.bin"), "there/data.bin differs")
        # Without a slash too, as with cp and rsync, and the root is a directory like any other; again, and it is unchanged.
        (root / "else").mkdir()
        (root / "else" / "stays").write_text("here")
        os.symlink("data.bin", lab.directory / "link")
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")
        for way, statuses in (("/else", ["ok", "unchanged"]), ("", ["ok", "unchanged"])):
            for status in statuses:
                sender = lab.start(None, "send", "send", "-a", "--insecure", source, native(receiver.uris) + way)
                check(sender.wait() == 0, sender.tail())
                said = [(event["path"], event["status"]) for event in sender.events if event["event"] == "file"]
                check(said in ([(str(source), status)], [("data.bin", status)]), f"{way}: {said}")
                check(sha256(source) == sha256(root / way.lstrip("/") / "data.bin"), f"{way}/data.bin differs")
            sender = lab.start(None, "send", "send", "-a", "--insecure", lab.directory / "link", native(receiver.uris) + way)
            check(sender.wait() == 0, sender.tail())
            check(os.readlink(root / way.lstrip("/") / "link") == "data.bin", f"{way}/link")
        check((root / "else" / "stays").read_text() == "here", "what stood in the directory")
        for name in ("link", "data.bin"):
            (root / name).unlink()
        shutil.rmtree(root / "else")
        receiver.stop()
        names = sorted(p.name for p in root.iterdir() if p.name != ".ccixfer")
        check(names == ["new.bin", "there"] and not staged(root), f"the root holds {names}, and staged is {staged(root)}")


def test_without_archive__like_cp_r():
    with Lab("cpr") as lab:
        source = small_tree(lab.directory / "tree", files=20)
        os.unlink(source / "dangling") if os.path.lexists(source / "dangling") else None
        for path in [p for p in source.rglob("*") if p.is_symlink()]:
            path.unlink()
        os.symlink("large", source / "followed")
        root = lab.directory / "root"
        root.mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")
        sender = lab.start(None, "send", "send", "--insecure", f"{source}/", native(receiver.uris) + "/tree/")
        check(sender.wait() == 0, sender.tail())
        followed = root / "tree" / "followed"
        check(not followed.is_symlink() and sha256(followed) == sha256(source / "large"), "the link was not followed")
        for path in (p for p in source.rglob("*") if p.is_file()):
            check(sha256(path) == sha256(root / "tree" / path.relative_to(source)), f"{path} differs")


def test_pull_without_archive__a_link_is_not_followed_counts_as_failed_and_the_rest_arrives():
    with Lab("cprpull") as lab:
        source = lab.directory / "tree"
        source.mkdir()
        (source / "file").write_bytes(b"content")
        os.symlink("/etc/hostname", source / "link")
        server = lab.start_ready(None, "serve", "send", "--serve", source, "--listen", "127.0.0.1:0", "--insecure")
        target = lab.directory / "target"
        puller = lab.start(None, "pull", "recv", "--insecure", native(server.uris) + "/", target)
        check(puller.wait() == 23, f"{puller.process.returncode} instead of 23: {puller.tail()}")
        check(puller.events[-1]["files_failed"] == 1, str(puller.events[-1]))
        check([p.name for p in target.iterdir()] == ["file"] and (target / "file").read_bytes() == b"content", "the rest did not arrive")
        check("link: " in server.stderr() and "pull with -a" in server.stderr(), server.tail())


def test_a_single_byte__through_two_routers__passes_every_stage_in_order():
    with TwoSites("byte") as sites:
        sites.verbose = ["-vv"]
        sites.start_routers()
        receiver = sites.receive("-vv")
        byte = sites.lab.directory / "byte"
        byte.write_bytes(b"x")

        def stages(process):
            return [int(n) for n in re.findall(r"\[stage (\d+)\]", process.stderr())]

        with open(byte, "rb") as stdin:   # standard input is sent as a piece, as large files are
            sender = sites.lab.start(sites.sender, "send", "send", "-vv", "-c", sites.sender_config, "--insecure", "-",
                                     routed(receiver.uris) + "/byte", stdin=stdin)
            check(sender.wait() == 0, sender.tail())
        check((sites.root / "byte").read_bytes() == b"x", "the byte differs")
        # one segment: the entry came with the request, and the answer to it asks for the piece
        check(stages(sender) == [1, 2, 3, 4, 5], f"the source passed {stages(sender)}")
        # complete before the ledger's 200 ms are over: a row would only be deleted again, so the ledger [10] is not written
        check(stages(receiver) == [8, 7, 8, 9, 11], f"the destination passed {stages(receiver)}")
        for router in sites.routers:
            check(stages(router) == [6], f"{router.name} passed {stages(router)}")
        # a file that takes longer passes the ledger, between writer and commit
        slow = big_file(sites.lab.directory / "slow", 24 << 20)
        sender = sites.send("--bwlimit", "20MB/s", slow, routed(receiver.uris) + "/slow")
        check(sender.wait() == 0, sender.tail())
        passed = stages(receiver)[5:]
        check(10 in passed and 9 in passed[: passed.index(10)] and passed.index(10) < passed.index(11) and passed.count(11) == 1,
              f"the destination passed {passed}")


def test_trailing_slash__is_rsyncs_rule_for_push_and_pull():
    with Lab("slash") as lab:
        source = small_tree(lab.directory / "tree", files=20)
        root = lab.directory / "root"
        root.mkdir()
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")
        for given, path, arrives in ((f"{source}/", "/content/", "content"), (source, "/under/", "under/tree"), (source, "/renamed", "renamed")):
            sender = lab.start(None, "send", "send", "-a", "--insecure", given, native(receiver.uris) + path)
            check(sender.wait() == 0, sender.tail())
            same_tree(source, root / arrives)
        several = lab.start(None, "send", "send", "-a", "--insecure", source, source / "large", native(receiver.uris) + "/several")
        check(several.wait() == 0, several.tail())
        check(sorted(p.name for p in (root / "several").iterdir()) == ["large", "tree"], "several sources make a directory")
        same_tree(source, root / "several" / "tree")
        server = lab.start_ready(None, "serve", "send", "--serve", lab.directory, "--listen", "127.0.0.1:0", "--insecure")
        for path, arrives in (("/tree/", ""), ("/tree", "tree")):
            target = lab.directory / f"pulled{len(arrives)}"
            target.mkdir()
            puller = lab.start(None, "pull", "recv", "-a", "--insecure", native(server.uris) + path, target)
            check(puller.wait() == 0, puller.tail())
            same_tree(source, target / arrives)


def test_pull_that_only_looks_or_fails__leaves_no_trace():
    with Lab("look") as lab:
        served = lab.directory / "served"
        (served / "d").mkdir(parents=True)
        (served / "d" / "f").write_bytes(b"abc")
        server = lab.start_ready(None, "serve", "send", "--serve", served, "--listen", "127.0.0.1:0", "--insecure")
        uri = native(server.uris)

        def pull(*arguments):
            puller = lab.start(None, "pull", "recv", "--insecure", *arguments)
            return puller, puller.wait()

        absent = lab.directory / "absent"
        puller, code = pull("-n", uri + "/d/", absent)
        check(code == 0, puller.tail())
        check(not absent.exists(), "a dry run made its directory")
        puller, code = pull("-n", uri + "/d/", lab.directory / "no" / "parent")
        check(code == 11, f"{code}: the real run could not make it: {puller.tail()}")
        puller, code = pull(uri + "/nothing", absent)
        check(code == 3, f"{code}: {puller.tail()}")
        check(not absent.exists(), "a pull that failed left its directory")
        present = lab.directory / "present"
        present.mkdir()
        before = present.stat()
        puller, code = pull("-n", uri + "/d/", present)
        check(code == 0, puller.tail())
        check(present.stat().st_ctime_ns == before.st_ctime_ns, "a dry run changed the directory")
        pull(uri + "/nothing", present)
        check(present.exists(), "a directory that was there before is gone")
        puller, code = pull(uri + "/d", absent)
        check(code == 0 and (absent / "d" / "f").read_bytes() == b"abc", puller.tail())


def test_without_a__group_and_access_control_lists_of_the_directory_are_as_cp_gives_them():
    with Lab("inherit") as lab:
        source, root = lab.directory / "source", lab.directory / "root"
        (source / "d").mkdir(parents=True)
        (source / "small").write_bytes(b"abc")
        (source / "d" / "private").write_bytes(b"abc")
        (source / "d" / "private").chmod(0o600)
        big_file(source / "big", 5 << 20)

        def entry(tag, permissions, name=0xFFFFFFFF):
            return struct.pack("<HHI", tag, permissions, name)

        acl = struct.pack("<I", 2) + entry(1, 7) + entry(2, 7, 1234) + entry(4, 5) + entry(16, 7) + entry(32, 5)
        root.mkdir()
        for name in ("group", "acl", "group-oracle", "acl-oracle"):
            (root / name).mkdir()
            if name.startswith("group"):
                os.chown(root / name, -1, 4321)
                (root / name).chmod(0o2775)
            else:
                os.setxattr(root / name, "system.posix_acl_default", acl)
        receiver = lab.start_ready(None, "recv", "recv", "--root", root, "--listen", "127.0.0.1:0", "--insecure")

        def has(path):
            lists = []
            for kind in ("system.posix_acl_access", "system.posix_acl_default"):
                try:
                    lists.append(os.getxattr(path, kind))
                except OSError:
                    lists.append(None)
            stat = path.stat()
            return oct(stat.st_mode), stat.st_uid, stat.st_gid, lists

        for name in ("group", "acl"):
            sender = lab.start(None, "send", "send", "--insecure", f"{source}/", f"{native(receiver.uris)}/{name}/")
            check(sender.wait() == 0, sender.tail())
            run("cp", "-r", f"{source}/.", root / f"{name}-oracle")
            for path in ("small", "big", "d", "d/private"):
                ours, oracle = has(root / name / path), has(root / f"{name}-oracle" / path)
                check(ours == oracle, f"{name}/{path}: {ours}, and cp gives {oracle}")
