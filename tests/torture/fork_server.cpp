// A fork server: the program is loaded once, and each further start of it is a fork that begins with main(). What is saved is what the
// linker and LibTorch do before main(), which takes longer than most of the runs that are walked.
//
// FAULTS_SERVER  number of an inherited socket (SOCK_SEQPACKET); the program is an ordinary one without it
//
// A request has the files 0, 1 and 2 of the new process beside it, and is strings that end with a zero: the folder to start in, the number
// of arguments, the arguments with the program's name before them, the environment. Answers are of type Answer. The end of the socket is
// that of the server.

#include <dirent.h>
#include <dlfcn.h>
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
#include <cerrno>
#include <cstdint>
#include <vector>

#include "faults.h"

namespace {

using Main = int (*)(int, char**, char**);
Main real_main = nullptr;

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
  int files[3] = {-1, -1, -1};
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

/// Waits for the next request; false at the end.
bool receive(int socket, Request& request) {
  request.bytes.resize(1 << 18);
  iovec piece = {request.bytes.data(), request.bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof request.files)];
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t length = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (length <= 0 || header == nullptr) return false;
  memcpy(request.files, CMSG_DATA(header), sizeof request.files);
  request.bytes.resize(static_cast<size_t>(length));
  split(request);
  return true;
}

void say(int socket, const Answer& answer) {
  if (send(socket, &answer, sizeof answer, MSG_NOSIGNAL) < 0) _exit(0);  // nobody listens any more
}

void say_who_ended(int socket) {
  int status = 0;
  rusage used = {};
  for (pid_t process; (process = wait4(-1, &status, WNOHANG, &used)) > 0;) {
    const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec); };
    say(socket, {process, 1, status, static_cast<int32_t>(used.ru_maxrss), seconds(used.ru_utime) + seconds(used.ru_stime)});
  }
}

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

/// Serves until the socket ends. Returns in a new process, with the request that it is for.
Request& serve(int socket) {
  require_single_thread();
  sigset_t of_children, former;
  sigemptyset(&of_children);
  sigaddset(&of_children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &of_children, &former);
  const int signals = signalfd(-1, &of_children, SFD_CLOEXEC);
  for (;;) {
    pollfd ready[] = {{signals, POLLIN, 0}, {socket, POLLIN, 0}};
    if (poll(ready, 2, -1) < 0 && errno != EINTR) stop_with("poll");
    signalfd_siginfo information;
    if ((ready[0].revents & POLLIN) != 0 && read(signals, &information, sizeof information) > 0) say_who_ended(socket);
    if (ready[1].revents == 0) continue;
    auto* const request = new Request();  // the new process keeps it to its end: main() is given parts of it
    if (!receive(socket, *request)) _exit(0);
    const pid_t process = fork();
    if (process < 0) stop_with("fork");
    if (process == 0) {
      close(signals);
      close(socket);
      sigprocmask(SIG_SETMASK, &former, nullptr);
      become(*request);
      return *request;
    }
    for (const int file : request->files) close(file);
    delete request;
    say(socket, {process, 0, 0, 0, 0});
  }
}

int serving_main(int count, char** arguments, char** environment) {
  const char* const socket = getenv("FAULTS_SERVER");
  if (socket == nullptr) return real_main(count, arguments, environment);
  Request& request = serve(atoi(socket));
  return real_main(static_cast<int>(request.arguments.size()) - 1, request.arguments.data(), request.environment.data());
}

}  // namespace

/// Called by the program's first lines, with its main().
// NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the name is the system's
extern "C" int __libc_start_main(Main entry, int count, char** arguments, void (*begin)(), void (*end)(), void (*unload)(), void* stack) {
  real_main = entry;
  using Start = int(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  auto* const start = reinterpret_cast<Start*>(dlsym(RTLD_NEXT, "__libc_start_main"));
  return start(serving_main, count, arguments, begin, end, unload, stack);
}
