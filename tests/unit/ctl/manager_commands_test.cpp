#include "ctl/manager_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

namespace pando::ctl {
namespace {

using ipc::ControlRequest;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

constexpr auto kPatience = 30s;

/// A manager that answers by a function, in a thread, until the client goes away.
class FakeManager {
 public:
  using Answer = std::function<Result<json>(const ControlRequest&)>;

  explicit FakeManager(Answer answer) {
    int fds[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) std::abort();
    client_ = Fd(fds[0]);
    thread_ = std::thread([server = Fd(fds[1]), answer = std::move(answer), this]() mutable {
      while (serve_one(server.get(), answer)) {
      }
    });
  }
  ~FakeManager() {
    client_.reset();
    thread_.join();
  }
  Fd take_client() { return std::move(client_); }
  /// After the session is gone: what was asked.
  const std::vector<ControlRequest>& requests() {
    if (thread_.joinable()) thread_.join();
    return requests_;
  }
  void join() { requests(); }

 private:
  bool serve_one(int fd, const Answer& answer) {
    auto message = ipc::receive_json(fd, ipc::kMaxRequestOctets, kPatience);
    if (!message) return false;
    auto request = ipc::request_from_json(*message);
    if (!request) return false;
    requests_.push_back(*request);
    auto result = answer(*request);
    const json reply =
        result ? ipc::ok_reply(std::move(*result)) : ipc::error_reply(result.error());
    return ipc::send_json(fd, reply, kPatience) && request->verb != ipc::verb::kStop;
  }

  Fd client_;
  std::vector<ControlRequest> requests_;
  std::thread thread_;
};

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
  std::vector<ControlRequest> requests;
};

Outcome run(FakeManager::Answer answer, const std::function<int(Session&)>& command,
            bool as_json = false) {
  int fds[2];
  (void)fds;
  std::ostringstream out;
  std::ostringstream err;
  Outcome outcome;
  int code = -1;
  std::vector<ControlRequest> requests;
  {
    auto manager = std::make_unique<FakeManager>(std::move(answer));
    {
      Session session(manager->take_client(), {out, err, as_json}, kPatience);
      code = command(session);
    }
    requests = manager->requests();
    manager.release();
  }
  return {code, out.str(), err.str(), std::move(requests)};
}

}  // namespace
}  // namespace pando::ctl
