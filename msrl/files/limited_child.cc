#include "msrl/files/limited_child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <new>
#include <string>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/core/sanitizers.h"
#include "msrl/files/atomic_file.h"

namespace msrl {
namespace {

constexpr int kGood = 0;
constexpr int kRefused = 1;
constexpr int kNoMemory = 2;
constexpr int kDefect = 3;

void Limit(int what, std::uint64_t value) {
  const struct rlimit limit { value, value };
  setrlimit(what, &limit);
}

// The sanitizer reserves more addresses than any limit allows, and opens pipes to look at memory.
void LimitMemoryAndFiles([[maybe_unused]] std::uint64_t more) {
#if !defined(MSRL_ADDRESS_SANITIZER)
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  Limit(RLIMIT_AS, pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) + more);
  Limit(RLIMIT_NOFILE, 0);
#endif
}

void Send(int out, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = write(out, bytes.data(), bytes.size());
    if (sent < 0 && errno != EINTR) _exit(kDefect);
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

[[noreturn]] void BeChild(int out, const ChildLimits& limits,
                          const std::function<std::string()>& work) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGPIPE}) {
    std::signal(signal, SIG_DFL);
  }
  // it would hold the locks of a parent that is killed
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  close_range(STDERR_FILENO + 1, static_cast<unsigned>(out) - 1, 0);
  close_range(static_cast<unsigned>(out) + 1, ~0U, 0);
  LimitMemoryAndFiles(limits.memory);
  Limit(RLIMIT_CPU, static_cast<std::uint64_t>(limits.seconds));
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_FSIZE, 0);  // pipes are not meant by it
  int code = kGood;
  try {
    Send(out, work());
  } catch (const UserError& error) {
    Send(out, error.what());
    code = kRefused;
  } catch (const std::bad_alloc&) {
    code = kNoMemory;
  } catch (...) {
    code = kDefect;
  }
  _exit(code);
}

}  // namespace

std::string InLimitedChild(std::string_view source, const ChildLimits& limits,
                           const std::function<std::string()>& work) {
  const auto fail = [source](const std::string& what) {
    throw UserError(StrCat(source, ": ", what));
  };
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail(StrCat("no pipe: ", std::strerror(errno)));
  FileDescriptor in(ends[0]), out(ends[1]);
  const pid_t child = fork();
  if (child < 0) fail(StrCat("no process to read it in: ", std::strerror(errno)));
  if (child == 0) BeChild(out.get(), limits, work);
  out.Close();
  std::string answer;
  std::vector<char> part(std::size_t{1} << 16);
  for (ssize_t size = 1; size != 0 && answer.size() <= limits.memory;) {
    size = read(in.get(), part.data(), part.size());
    if (size < 0 && errno != EINTR) break;
    if (size > 0) answer.append(part.data(), static_cast<std::size_t>(size));
  }
  in.Close();  // a child that has more to say ends here
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kGood) return answer;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kRefused) throw UserError(answer);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoMemory) {
    fail(StrCat("reading it takes more than ", limits.memory / 1'000'000, " MB of memory"));
  }
  if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL)) {
    fail(StrCat("reading it takes more than ", limits.seconds, " s"));
  }
  throw UserError(StrCat(source, ": the library that reads such files crashes on it"));
}

}  // namespace msrl
