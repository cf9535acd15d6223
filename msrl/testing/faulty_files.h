// Files that go wrong: a call that fails or at which the process dies, and disks whose power went.
#ifndef MSRL_TESTING_FAULTY_FILES_H_
#define MSRL_TESTING_FAULTY_FILES_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "msrl/core/rng.h"
#include "msrl/files/file_system.h"

namespace msrl::testing {

enum class Fault {
  kNoSpace,      // ENOSPC, from what needs space
  kIoError,      // EIO
  kInterrupted,  // EINTR
  kShort,        // reads and writes of half the bytes
  kCrash,        // the process ends before a change, in the middle of a write
};

// Thrown where the process would end. No std::exception, so that nobody takes it for an error.
struct Crash {};

// The system's files, but one call goes wrong, or that and all after it. Nothing is flushed, which
// only a loss of power could tell.
class FaultyFiles : public FileSystem {
 public:
  enum class Duration { kOnce, kFromThenOn };

  // Nothing goes wrong.
  FaultyFiles() = default;
  // `at` counts the calls that this fault can meet, from 0.
  FaultyFiles(Fault fault, std::int64_t at, Duration duration = Duration::kOnce)
      : fault_(fault), at_(at), duration_(duration) {}

  std::int64_t calls() const { return calls_; }
  bool met() const { return fault_ && calls_ > at_; }

 protected:
  int DoOpen(int folder, const char* name, int flags, mode_t mode) override;
  int DoClose(int fd) override;
  ssize_t DoRead(int fd, std::byte* to, std::size_t size, std::uint64_t at) override;
  ssize_t DoWrite(int fd, const char* from, std::size_t size, std::uint64_t at) override;
  int DoTruncate(int fd, std::uint64_t size) override;
  int DoSync(int fd) override;
  int DoSetMode(int fd, mode_t mode) override;
  int DoLook(int folder, const char* name, struct stat& info) override;
  int DoMakeFolder(int parent, const char* name) override;
  int DoRename(int folder, const char* from, const char* to) override;
  int DoRemove(int folder, const char* name, int flags) override;
  int DoLock(int fd, int operation) override;

 private:
  // What a call does: which faults it can meet.
  enum class Effect { kLooks, kReads, kChanges, kTakesSpace, kWrites };

  bool CanMeet(Effect effect) const;
  bool GoesWrong(Effect effect);
  int Fail() const;
  template <typename Call>
  int Try(Effect effect, const Call& call) {
    return GoesWrong(effect) ? Fail() : call();
  }

  std::optional<Fault> fault_;
  std::int64_t at_ = 0;
  Duration duration_ = Duration::kOnce;
  std::int64_t calls_ = 0;
};

// What is below a folder: relative path and contents; none for a folder.
using Tree = std::map<std::string, std::optional<std::string>>;
Tree ReadTree(const std::filesystem::path& root);
// In place of what is there.
void WriteTree(const std::filesystem::path& root, const Tree& tree);

// The system's files, with a record of all changes below a folder, so that one can ask what a disk
// holds if the power goes at any moment. Only fsync brings anything there: of a file its contents,
// of a folder its names. What was not flushed arrives in part and in any order, a write torn.
class RecordedFiles : public FileSystem {
 public:
  // What is in the folder already is on the disk.
  explicit RecordedFiles(const std::filesystem::path& root);

  std::size_t changes() const { return changes_.size(); }
  // The disk after the first `count` changes; what was not flushed arrives with this probability.
  Tree AfterPowerLoss(std::size_t count, double arrives, Rng& rng) const;

 protected:
  int DoOpen(int folder, const char* name, int flags, mode_t mode) override;
  ssize_t DoWrite(int fd, const char* from, std::size_t size, std::uint64_t at) override;
  int DoTruncate(int fd, std::uint64_t size) override;
  int DoSync(int fd) override;
  int DoMakeFolder(int parent, const char* name) override;
  int DoRename(int folder, const char* from, const char* to) override;
  int DoRemove(int folder, const char* name, int flags) override;

 private:
  using Node = int;
  struct Change {
    enum class Kind { kName, kWrite, kTruncate, kSync } kind;
    Node node;              // whose contents or names change
    std::string name = {};  // that appears, or of a rename is taken away; bytes of a write
    std::uint64_t at = 0;   // where a write begins, or the new size
    std::string from = {};  // the name that goes
    std::optional<Node> target = {};  // what the new name stands for; none: the name goes
  };
  using Names = std::map<std::string, Node>;

  std::optional<Node> NodeOf(int folder, const char* name) const;
  std::optional<Node> NodeOf(int fd) const { return NodeOf(fd, ""); }
  Node NewNode(int folder, const char* name, bool is_folder);
  void Record(std::optional<Node> node, Change change);

  std::map<std::pair<dev_t, ino_t>, Node> known_;
  std::vector<bool> is_folder_;  // of each node; the first is the root
  // what is on the disk from the beginning
  std::map<Node, Names> first_names_;
  std::map<Node, std::string> first_contents_;
  std::vector<Change> changes_;
};

}  // namespace msrl::testing

#endif  // MSRL_TESTING_FAULTY_FILES_H_
