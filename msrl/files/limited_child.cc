#include "msrl/files/limited_child.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <new>
#include <string>

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

[[noreturn]] void BeChild(int out, const ChildLimits& limits, const std::function<void()>& work) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(signal, SIG_DFL);
  LimitMemoryAndFiles(limits.memory);
  Limit(RLIMIT_CPU, static_cast<std::uint64_t>(limits.seconds));
  Limit(RLIMIT_CORE, 0);
  Limit(RLIMIT_FSIZE, 0);  // pipes are not meant by it
  int code = kGood;
  try {
    work();
  } catch (const UserError& error) {
    static_cast<void>(!write(out, error.what(), std::strlen(error.what())));
    code = kRefused;
  } catch (const std::bad_alloc&) {
    code = kNoMemory;
  } catch (...) {
    code = kDefect;
  }
  _exit(code);
}

}  // namespace

void RequireHarmless(std::string_view source, const ChildLimits& limits,
                     const std::function<void()>& work) {
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
  std::string message;
  char part[256];
  for (ssize_t size = 1; size != 0;) {
    size = read(in.get(), part, sizeof part);
    if (size > 0) message.append(part, static_cast<std::size_t>(size));
    if (size < 0 && errno != EINTR) break;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kGood) return;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kRefused) throw UserError(message);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoMemory) {
    fail(StrCat("reading it takes more than ", limits.memory / 1'000'000, " MB of memory"));
  }
  if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL)) {
    fail(StrCat("reading it takes more than ", limits.seconds, " s"));
  }
  fail("the library that reads such files crashes on it");
}

}  // namespace msrl
