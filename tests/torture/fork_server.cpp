// A fork server: the program is loaded once, and each further start of it is a fork that begins with main(). What is saved is what the
// linker and LibTorch do before main(), which takes longer than most of the runs that are walked.
//
// FAULTS_SERVER  number of an inherited socket (SOCK_SEQPACKET); the program is an ordinary one without it
//
// A request has the files 0, 1 and 2 of the new process beside it, and is strings that end with a zero: the folder to start in, the number
// of arguments, the arguments with the program's name before them, the environment. Answers are of type Answer. The end of the socket is
// that of the server.
//
// Where a process of the server starts the program itself, as an ablation does, that is a fork of the server too: the child that would
// become the program asks for it, passes signals on to it, and ends as it ends.

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "faults.h"

namespace {

using Main = int (*)(int, char**, char**);
Main real_main = nullptr;
int asking = -1;  // where processes of the server ask for others

/// What the server says: a process has begun, or one has ended.
struct Answer {
  int32_t process;
  int32_t has_ended;
  int32_t status;    // as of waitpid
  int32_t most_kib;  // of memory
  double seconds_of_cpu;
};

/// A new process, as asked for. All points into `bytes`.
struct Request {
  std::vector<char> bytes;
  std::array<int, 4> files = {-1, -1, -1, -1};  // the standard ones, and one for answers where the server's socket is not
  const char* folder = nullptr;
  std::vector<char*> arguments, environment;  // each with a null at the end
};

[[noreturn]] void stop_with(const char* problem) {
  fprintf(stderr, "fork server: %s: %s\n", problem, strerror(errno));
  _exit(70);
}

/// A fork has this thread alone, so there must be no other.
void require_single_thread() {
  DIR* const threads = opendir("/proc/self/task");
  int number = 0;
  while (const dirent* const entry = readdir(threads)) number += entry->d_name[0] != '.';
  closedir(threads);
  errno = 0;
  if (number != 1) stop_with("the program has threads before main()");
}

void split(Request& request) {
  char* next = request.bytes.data();
  char* const end = next + request.bytes.size();
  const auto take = [&] {
    char* const text = next;
    next = std::find(next, end, '\0') + 1;
    return text;
  };
  request.folder = take();
  for (int left = atoi(take()); left > 0; --left) request.arguments.push_back(take());
  while (next < end) request.environment.push_back(take());
  request.arguments.push_back(nullptr);
  request.environment.push_back(nullptr);
}

/// Reads the next request; false at the end.
bool receive(int socket, Request& request) {
  request.bytes.resize(1 << 18);
  iovec piece = {request.bytes.data(), request.bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(Request::files))];
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (length <= 0 || header == nullptr) return false;
  memcpy(request.files.data(), CMSG_DATA(header), std::min(header->cmsg_len - CMSG_LEN(0), sizeof request.files));
  request.bytes.resize(static_cast<size_t>(length));
  split(request);
  return true;
}

/// The server.
class Server {
 public:
  explicit Server(int socket) : socket_(socket) {
    sigset_t of_children;
    sigemptyset(&of_children);
    sigaddset(&of_children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &of_children, &former_);
    ends_of_children_ = signalfd(-1, &of_children, SFD_CLOEXEC);
    int ends[2];
    if (ends_of_children_ < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) stop_with("cannot serve");
    asked_ = ends[0];
    asking = ends[1];
  }

  /// Serves until the socket ends. Returns in a new process, with the request that it is for.
  Request& serve() {
    for (;;) {
      pollfd ready[] = {{ends_of_children_, POLLIN, 0}, {socket_, POLLIN, 0}, {asked_, POLLIN, 0}};
      if (poll(ready, std::size(ready), -1) < 0 && errno != EINTR) stop_with("poll");
      signalfd_siginfo information;
      if (ready[0].revents != 0 && read(ends_of_children_, &information, sizeof information) > 0) say_who_ended();
      for (const pollfd& from : {ready[1], ready[2]})
        if (from.revents != 0)
          if (Request* const request = fork_for(from.fd); request != nullptr) return *request;
    }
  }

 private:
  /// Starts what is asked for. Returns null in the server; in the new process the request, which is kept to its end: main() is given parts
  /// of it.
  Request* fork_for(int from) {
    auto* const request = new Request();
    if (!receive(from, *request)) _exit(0);
    const pid_t process = fork();
    if (process < 0) stop_with("fork");
    if (process == 0) {
      for (const auto& [other, listener] : listeners_) close(listener);
      for (const int file : {ends_of_children_, socket_, asked_, request->files[3]}) close(file);
      sigprocmask(SIG_SETMASK, &former_, nullptr);
      return request;
    }
    const int listener = request->files[3] >= 0 ? request->files[3] : fcntl(socket_, F_DUPFD_CLOEXEC, 0);
    listeners_[process] = listener;
    for (int file = 0; file < 3; ++file) close(request->files[file]);
    delete request;
    say(listener, {process, 0, 0, 0, 0});
    return nullptr;
  }

  void say_who_ended() {
    int status = 0;
    rusage used = {};
    for (pid_t process; (process = wait4(-1, &status, WNOHANG, &used)) > 0;) {
      const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec); };
      const int listener = listeners_.extract(process).mapped();
      say(listener, {process, 1, status, static_cast<int32_t>(used.ru_maxrss), seconds(used.ru_utime) + seconds(used.ru_stime)});
      close(listener);
    }
  }

  /// One who listens no more has ended, as may this server: it sees the end of its own socket.
  static void say(int listener, const Answer& answer) { send(listener, &answer, sizeof answer, MSG_NOSIGNAL); }

  int socket_, ends_of_children_ = -1, asked_ = -1;
  sigset_t former_ = {};
  std::map<pid_t, int> listeners_;
};

/// Makes this process what was asked for.
void become(const Request& request) {
  setsid();
  for (int file = 0; file < 3; ++file) {
    if (dup2(request.files[file], file) < 0) stop_with("dup2");
    close(request.files[file]);
  }
  if (chdir(request.folder) != 0) stop_with(request.folder);
  environ = const_cast<char**>(request.environment.data());
  read_fault_settings();
}

/// Asks the server for a process with these arguments and the standard files of this one. Its answers come to the socket that is returned.
int ask_for(char* const* arguments, char* const* environment) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) stop_with("socketpair");
  char folder[PATH_MAX];
  if (getcwd(folder, sizeof folder) == nullptr) stop_with("getcwd");
  std::string bytes;
  const auto add = [&](const char* text) { bytes.append(text, strlen(text) + 1); };
  int count = 0;
  while (arguments[count] != nullptr) ++count;
  add(folder);
  add(std::to_string(count).c_str());
  for (; *arguments != nullptr; ++arguments) add(*arguments);
  for (; *environment != nullptr; ++environment) add(*environment);
  iovec piece = {bytes.data(), bytes.size()};
  const int files[] = {0, 1, 2, ends[1]};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof files)] = {};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof files);
  memcpy(CMSG_DATA(header), files, sizeof files);
  if (sendmsg(asking, &message, MSG_NOSIGNAL) < 0) stop_with("sendmsg");
  return ends[0];
}

[[noreturn]] void end_as(int status) {
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    signal(number, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &one, nullptr);
    kill(getpid(), number);
  }
  _exit(WEXITSTATUS(status));
}

/// Stands for a process of the server in the eyes of the parent of this one, which keeps no file of its parent open.
[[noreturn]] void stand_for(char* const* arguments, char* const* environment) {
  sigset_t passed_on;
  sigemptyset(&passed_on);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&passed_on, number);
  sigprocmask(SIG_BLOCK, &passed_on, nullptr);
  const int answers = ask_for(arguments, environment), signals = signalfd(-1, &passed_on, SFD_CLOEXEC);
  if (dup2(answers, 0) < 0 || dup2(signals, 1) < 0 || close_range(2, UINT_MAX, 0) != 0) stop_with("files");
  Answer answer = {};
  if (recv(0, &answer, sizeof answer, 0) <= 0) _exit(70);
  const pid_t process = answer.process;
  for (;;) {
    pollfd ready[] = {{0, POLLIN, 0}, {1, POLLIN, 0}};
    if (poll(ready, std::size(ready), -1) < 0) continue;
    signalfd_siginfo information;
    if (ready[1].revents != 0 && read(1, &information, sizeof information) > 0) kill(process, static_cast<int>(information.ssi_signo));
    if (ready[0].revents == 0) continue;
    if (recv(0, &answer, sizeof answer, 0) <= 0) _exit(70);
    end_as(answer.status);
  }
}

int serving_main(int count, char** arguments, char** environment) {
  const char* const socket = getenv("FAULTS_SERVER");
  if (socket == nullptr) return real_main(count, arguments, environment);
  require_single_thread();
  Request& request = Server(atoi(socket)).serve();
  become(request);
  return real_main(static_cast<int>(request.arguments.size()) - 1, request.arguments.data(), request.environment.data());
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the names are the system's
extern "C" {

/// Called by the program's first lines, with its main().
int __libc_start_main(Main entry, int count, char** arguments, void (*begin)(), void (*end)(), void (*unload)(), void* stack) {
  real_main = entry;
  using Start = int(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  auto* const start = reinterpret_cast<Start*>(dlsym(RTLD_NEXT, "__libc_start_main"));
  return start(serving_main, count, arguments, begin, end, unload, stack);
}

/// Who stands for a program goes on beside its parent, with memory of its own.
pid_t vfork() noexcept {
  return fork();
}

int execvpe(const char* file, char* const* arguments, char* const* environment) noexcept {
  if (asking >= 0 && strcmp(file, "/proc/self/exe") == 0) stand_for(arguments, environment);
  auto* const exec = reinterpret_cast<int (*)(const char*, char* const*, char* const*)>(dlsym(RTLD_NEXT, "execvpe"));
  return exec(file, arguments, environment);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
