#include "msrl/testing/faulty_files.h"

#include <fcntl.h>

#include <algorithm>
#include <fstream>
#include <functional>

#include "msrl/core/check.h"
#include "msrl/testing/slurp.h"

namespace msrl::testing {

namespace fs = std::filesystem;

// ---- one call goes wrong ----

bool FaultyFiles::CanMeet(Effect effect) const {
  switch (*fault_) {
    case Fault::kNoSpace:
      return effect == Effect::kTakesSpace || effect == Effect::kWrites;
    case Fault::kIoError:
    case Fault::kInterrupted:
      return true;
    case Fault::kShort:
      return effect == Effect::kReads || effect == Effect::kWrites;
    case Fault::kCrash:
      return effect != Effect::kLooks && effect != Effect::kReads;
  }
  return false;
}

bool FaultyFiles::GoesWrong(Effect effect) {
  if (!fault_ || !CanMeet(effect)) return false;
  const std::int64_t call = calls_++;
  if (*fault_ == Fault::kCrash && call == at_ && effect != Effect::kWrites) throw Crash{};
  // of a process that has ended, what it does while it unwinds changes nothing
  const bool for_ever = duration_ == Duration::kFromThenOn || *fault_ == Fault::kCrash;
  return for_ever ? call >= at_ : call == at_;
}

int FaultyFiles::Fail() const {
  errno = *fault_ == Fault::kNoSpace ? ENOSPC : *fault_ == Fault::kInterrupted ? EINTR : EIO;
  return -1;
}

int FaultyFiles::DoOpen(int folder, const char* name, int flags, mode_t mode) {
  struct stat info {};
  const bool creates = (flags & O_CREAT) != 0 && FileSystem::DoLook(folder, name, info) != 0;
  return Try(creates ? Effect::kTakesSpace : Effect::kLooks,
             [&] { return FileSystem::DoOpen(folder, name, flags, mode); });
}
// What is closed stays closed, whatever happens: destructors do it.
int FaultyFiles::DoClose(int fd) { return FileSystem::DoClose(fd); }

ssize_t FaultyFiles::DoRead(int fd, std::byte* to, std::size_t size, std::uint64_t at) {
  if (!GoesWrong(Effect::kReads)) return FileSystem::DoRead(fd, to, size, at);
  if (*fault_ != Fault::kShort) return Fail();
  return FileSystem::DoRead(fd, to, std::max<std::size_t>(1, size / 2), at);
}
ssize_t FaultyFiles::DoWrite(int fd, const char* from, std::size_t size, std::uint64_t at) {
  if (!GoesWrong(Effect::kWrites)) return FileSystem::DoWrite(fd, from, size, at);
  const bool crashes = *fault_ == Fault::kCrash && calls_ - 1 == at_;
  if (*fault_ != Fault::kShort && !crashes) return Fail();
  const ssize_t half = FileSystem::DoWrite(fd, from, std::max<std::size_t>(1, size / 2), at);
  if (crashes) throw Crash{};
  return half;
}
int FaultyFiles::DoTruncate(int fd, std::uint64_t size) {
  return Try(Effect::kChanges, [&] { return FileSystem::DoTruncate(fd, size); });
}
int FaultyFiles::DoSync(int /*fd*/) {
  return Try(Effect::kTakesSpace, [] { return 0; });
}
int FaultyFiles::DoSetMode(int fd, mode_t mode) {
  return Try(Effect::kChanges, [&] { return FileSystem::DoSetMode(fd, mode); });
}
int FaultyFiles::DoLook(int folder, const char* name, struct stat& info) {
  return Try(Effect::kLooks, [&] { return FileSystem::DoLook(folder, name, info); });
}
int FaultyFiles::DoMakeFolder(int parent, const char* name) {
  return Try(Effect::kTakesSpace, [&] { return FileSystem::DoMakeFolder(parent, name); });
}
int FaultyFiles::DoRename(int folder, const char* from, const char* to) {
  return Try(Effect::kTakesSpace, [&] { return FileSystem::DoRename(folder, from, to); });
}
int FaultyFiles::DoRemove(int folder, const char* name, int flags) {
  return Try(Effect::kChanges, [&] { return FileSystem::DoRemove(folder, name, flags); });
}
int FaultyFiles::DoLock(int fd, int operation) {
  return Try(Effect::kLooks, [&] { return FileSystem::DoLock(fd, operation); });
}

// ---- trees ----

Tree ReadTree(const fs::path& root) {
  Tree tree;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root)) {
    const std::string path = entry.path().lexically_relative(root).string();
    if (entry.is_directory()) {
      tree[path] = std::nullopt;
    } else {
      tree[path] = Slurp(entry.path());
    }
  }
  return tree;
}

void WriteTree(const fs::path& root, const Tree& tree) {
  fs::remove_all(root);
  fs::create_directories(root);
  // a folder comes before what is in it
  for (const auto& [path, contents] : tree) {
    if (!contents) {
      fs::create_directory(root / path);
    } else {
      std::ofstream(root / path, std::ios::binary) << *contents;
    }
  }
}

// ---- the power goes ----

RecordedFiles::RecordedFiles(const fs::path& root) {
  const std::function<void(Node, const fs::path&)> add = [&](Node node, const fs::path& path) {
    if (!is_folder_[static_cast<std::size_t>(node)]) {
      first_contents_[node] = Slurp(path);
      return;
    }
    Names& names = first_names_[node];
    for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
      const Node child = NewNode(AT_FDCWD, entry.path().c_str(), entry.is_directory());
      names[entry.path().filename().string()] = child;
      add(child, entry.path());
    }
  };
  add(NewNode(AT_FDCWD, root.c_str(), /*is_folder=*/true), root);
}

std::optional<RecordedFiles::Node> RecordedFiles::NodeOf(int folder, const char* name) const {
  struct stat info {};
  if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) != 0) return std::nullopt;
  const auto found = known_.find({info.st_dev, info.st_ino});
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

RecordedFiles::Node RecordedFiles::NewNode(int folder, const char* name, bool is_folder) {
  struct stat info {};
  MSRL_CHECK_EQ(fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH), 0);
  const auto node = static_cast<Node>(is_folder_.size());
  is_folder_.push_back(is_folder);
  known_[{info.st_dev, info.st_ino}] = node;  // the system gives numbers of removed files again
  return node;
}

void RecordedFiles::Record(std::optional<Node> node, Change change) {
  if (!node) return;  // outside
  change.node = *node;
  changes_.push_back(std::move(change));
}

int RecordedFiles::DoOpen(int folder, const char* name, int flags, mode_t mode) {
  struct stat info {};
  const bool creates = (flags & O_CREAT) != 0 && FileSystem::DoLook(folder, name, info) != 0;
  const int fd = FileSystem::DoOpen(folder, name, flags, mode);
  if (fd >= 0 && creates) {
    const std::optional<Node> parent = NodeOf(folder);
    if (parent) {
      const Node node = NewNode(fd, "", /*is_folder=*/false);
      Record(parent, {.kind = Change::Kind::kName, .node = 0, .name = name, .target = node});
    }
  }
  return fd;
}

ssize_t RecordedFiles::DoWrite(int fd, const char* from, std::size_t size, std::uint64_t at) {
  const ssize_t written = FileSystem::DoWrite(fd, from, size, at);
  if (written > 0) {
    const std::string bytes(from, static_cast<std::size_t>(written));
    Record(NodeOf(fd), {.kind = Change::Kind::kWrite, .node = 0, .name = bytes, .at = at});
  }
  return written;
}
int RecordedFiles::DoTruncate(int fd, std::uint64_t size) {
  const int result = FileSystem::DoTruncate(fd, size);
  if (result == 0) Record(NodeOf(fd), {.kind = Change::Kind::kTruncate, .node = 0, .at = size});
  return result;
}
int RecordedFiles::DoSync(int fd) {
  Record(NodeOf(fd), {.kind = Change::Kind::kSync, .node = 0});
  return 0;
}
int RecordedFiles::DoMakeFolder(int parent, const char* name) {
  const int result = FileSystem::DoMakeFolder(parent, name);
  if (const std::optional<Node> above = NodeOf(parent); result == 0 && above) {
    const Node node = NewNode(parent, name, /*is_folder=*/true);
    Record(above, {.kind = Change::Kind::kName, .node = 0, .name = name, .target = node});
  }
  return result;
}
int RecordedFiles::DoRename(int folder, const char* from, const char* to) {
  const std::optional<Node> node = NodeOf(folder, from);
  const int result = FileSystem::DoRename(folder, from, to);
  if (result == 0) {
    Record(NodeOf(folder),
           {.kind = Change::Kind::kName, .node = 0, .name = to, .from = from, .target = node});
  }
  return result;
}
int RecordedFiles::DoRemove(int folder, const char* name, int flags) {
  const int result = FileSystem::DoRemove(folder, name, flags);
  if (result == 0) Record(NodeOf(folder), {.kind = Change::Kind::kName, .node = 0, .from = name});
  return result;
}

Tree RecordedFiles::AfterPowerLoss(std::size_t count, double arrives, Rng& rng) const {
  MSRL_CHECK(count <= changes_.size());
  std::map<Node, std::size_t> flushed;  // changes before this one are on the disk
  for (std::size_t i = 0; i < count; ++i) {
    if (changes_[i].kind == Change::Kind::kSync) flushed[changes_[i].node] = i;
  }
  std::map<Node, Names> names = first_names_;
  std::map<Node, std::string> contents = first_contents_;
  for (std::size_t i = 0; i < count; ++i) {
    const Change& change = changes_[i];
    const auto last = flushed.find(change.node);
    const bool safe = last != flushed.end() && i < last->second;
    if (!safe && rng.Uniform() >= arrives) continue;
    switch (change.kind) {
      case Change::Kind::kName:
        if (!change.from.empty()) names[change.node].erase(change.from);
        if (change.target) names[change.node][change.name] = *change.target;
        break;
      case Change::Kind::kWrite: {
        const bool torn = !safe && rng.Uniform() < 0.3;
        const auto size = static_cast<std::int64_t>(change.name.size());
        const auto kept = static_cast<std::size_t>(torn ? rng.Index(size) : size);
        std::string& file = contents[change.node];
        // what is before it and did not arrive reads as zeros
        file.resize(std::max<std::size_t>(file.size(), change.at + kept), '\0');
        file.replace(change.at, kept, change.name, 0, kept);
        break;
      }
      case Change::Kind::kTruncate:
        contents[change.node].resize(change.at, '\0');
        break;
      case Change::Kind::kSync:
        break;
    }
  }
  Tree tree;
  const std::function<void(Node, const std::string&)> add = [&](Node node,
                                                                const std::string& path) {
    if (!is_folder_[static_cast<std::size_t>(node)]) {
      tree[path] = contents[node];
      return;
    }
    if (!path.empty()) tree[path] = std::nullopt;
    for (const auto& [name, child] : names[node]) {
      add(child, path.empty() ? name : path + "/" + name);
    }
  };
  add(0, "");
  return tree;
}

}  // namespace msrl::testing
