#include "manager/verifier/program_run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/progress.h"
#include "ipc/packet_socket.h"

namespace pando::manager {

namespace {

struct Pipe {
  Fd reading;
  Fd writing;
};

/// Programs open `/dev/stdin` and its like anew, which the pipe's mode has to allow: they may have
/// another user. No other process can open the pipe, since it has no name.
Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("pipe2");
  Pipe pipe{Fd(ends[0]), Fd(ends[1])};
  if (::fchmod(pipe.reading.get(), 0666) != 0) return fail_errno("fchmod of a pipe");
  return pipe;
}

Status unblock(const Fd& fd) {
  if (::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK) != 0)
    return fail_errno("fcntl");
  return {};
}

/// Octets of the UTF-8 character that `text` begins with; 0: it begins with none, or with a
/// control. Logs and status are UTF-8, and terminals obey the controls of C1 (U+0080 to U+009F),
/// too.
std::size_t printable_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC0 || first >= 0xF8 || text.size() < length) return 0;
  std::uint32_t code = first & (0x7FU >> length);
  for (const char next : text.substr(1, length - 1)) {
    if ((static_cast<unsigned char>(next) & 0xC0U) != 0x80) return 0;
    code = code << 6 | (static_cast<unsigned char>(next) & 0x3FU);
  }
  constexpr std::array<std::uint32_t, 5> kFirstOfLength{0, 0, 0xA0, 0x800, 0x1'0000};
  const bool is_surrogate = code >= 0xD800 && code < 0xE000;
  return code >= kFirstOfLength[length] && code < 0x11'0000 && !is_surrogate ? length : 0;
}

/// The text without control characters and invalid UTF-8.
std::string printable(std::string_view text) {
  std::string line;
  while (!text.empty()) {
    const std::size_t length = printable_length(text);
    line += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return line;
}

/// Waits for the end of the supervisor process.
bool has_ended_within(const Fd& pidfd, int milliseconds) {
  pollfd ended{pidfd.get(), POLLIN, 0};
  return ::poll(&ended, 1, milliseconds) > 0;
}

}  // namespace

Result<std::unique_ptr<ProgramRun>> ProgramRun::start(const VerifierCommand& command,
                                                      const Launcher* launcher,
                                                      std::chrono::milliseconds most_time,
                                                      const std::atomic<bool>* stopped) {
  std::unique_ptr<ProgramRun> run(new ProgramRun());
  run->launcher_ = launcher;
  run->stopped_ = stopped;
  run->most_time_ = most_time;
  run->deadline_ = Clock::now() + most_time;
  VerifierDescriptors theirs{};
  std::vector<Fd> owned;
  if (auto made = run->make_descriptors(theirs, owned); !made) return pass(made);
  auto child = launcher != nullptr ? launcher->spawn_verifier(command, theirs)
                                   : spawn_verifier(command, theirs);
  if (!child) return pass(child);
  run->child_ = std::move(*child);
  return run;
}

Status ProgramRun::make_descriptors(VerifierDescriptors& theirs, std::vector<Fd>& owned) {
  auto input = make_pipe();
  auto output = make_pipe();
  auto errors = make_pipe();
  auto link = ipc::packet_pair();
  if (!input) return pass(input);
  if (!output) return pass(output);
  if (!errors) return pass(errors);
  if (!link) return pass(link);
  input_ = std::move(input->writing);
  output_.fd = std::move(output->reading);
  errors_.fd = std::move(errors->reading);
  link_ = std::move(link->first);
  for (const Fd* fd : {&input_, &output_.fd, &errors_.fd})
    if (auto unblocked = unblock(*fd); !unblocked) return unblocked;
  for (Fd* fd : {&input->reading, &output->writing, &errors->writing, &link->second}) {
    theirs[owned.size()] = fd->get();
    owned.push_back(std::move(*fd));
  }
  return {};
}

ProgramRun::~ProgramRun() {
  // When the link closes, the supervisor process kills all that the program has started.
  link_.reset();
  if (!child_.pidfd) return;
  constexpr int kKillMs = 15'000;
  if (!has_ended_within(child_.pidfd, kKillMs))
    static_cast<void>(kill_process(child_.pidfd.get(), launcher_));
  siginfo_t ignored{};  // the launcher reaps its own children
  if (launcher_ == nullptr)
    ::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(child_.pidfd.get()), &ignored,
             WEXITED);
}

Status ProgramRun::check_time() const {
  const Progress* work = Progress::here();
  const bool given_up = work != nullptr && work->is_given_up();
  if (given_up || (stopped_ != nullptr && stopped_->load(std::memory_order_relaxed)))
    return fail(Errc::kIo, "{}", kGivenUp);
  if (Clock::now() < deadline_) return {};
  return fail(Errc::kIo, "no verdict within {} s",
              std::chrono::duration_cast<std::chrono::seconds>(most_time_).count());
}

bool ProgramRun::read_from(Stream& stream) {
  // One read a step: a program that prints endlessly must not delay the check of the time.
  std::array<char, 65536> buffer;
  const ssize_t got = ::read(stream.fd.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) stream.fd.reset();
  if (got <= 0) return false;
  const std::size_t room = kKeptOutput - stream.kept.size();
  stream.kept.append(buffer.data(), std::min(room, static_cast<std::size_t>(got)));
  return true;
}

void ProgramRun::read_link() {
  ipc::Packet packet;
  auto got = ipc::receive_packet(link_.get(), packet);
  if (!got)
    end_ = fail(Errc::kIo, "its supervisor process has ended");
  else if (*got)
    end_ = decode_verifier_end(packet.data);
}

Status ProgramRun::step() {
  constexpr int kLookMs = 100;
  // A descriptor of -1 is not waited for.
  pollfd watched[]{{link_.get(), POLLIN, 0},
                   {output_.fd.get(), POLLIN, 0},
                   {errors_.fd.get(), POLLIN, 0},
                   {input_.get(), POLLOUT, 0}};
  if (::poll(watched, std::size(watched), kLookMs) < 0 && errno != EINTR) return fail_errno("poll");
  if (watched[1].revents != 0) read_from(output_);
  if (watched[2].revents != 0) read_from(errors_);
  if (watched[0].revents != 0) read_link();
  return end_ ? Status() : check_time();
}

Status ProgramRun::write(std::string_view text) {
  while (!text.empty() && !end_) {
    const ssize_t written = ::write(input_.get(), text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return fail_errno("write");  // EPIPE: input closed
    if (auto went_on = step(); !went_on) {
      end_ = pass(went_on);
      return fail(Errc::kIo, "the program's run has ended");
    }
  }
  if (end_) return fail(Errc::kNotFound, "the program has ended");
  return check_time();
}

Result<VerifierEnd> ProgramRun::finish() {
  input_.reset();
  while (!end_)
    if (auto went_on = step(); !went_on) end_ = pass(went_on);
  // The program's last output may still be in the pipes. No process writes to them any more.
  if (*end_)
    for (Stream* stream : {&output_, &errors_})
      while (stream->fd && stream->kept.size() < kKeptOutput && read_from(*stream)) {
      }
  return *end_;
}

std::string ProgramRun::first_line() const {
  constexpr std::size_t kMaxLineBytes = 300;
  for (const std::string& text : {errors_.kept, output_.kept}) {
    const std::size_t begin = text.find_first_not_of("\r\n\t ");
    if (begin == std::string::npos) continue;
    return printable(text.substr(begin, std::min(text.find('\n', begin) - begin, kMaxLineBytes)));
  }
  return {};
}

}  // namespace pando::manager
