#include "manager/control/control_server.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <asio/post.hpp>
#include <asio/thread_pool.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "manager/control/http_user.h"

namespace pando::manager {
namespace control_server_test {

using Rights = ControlServer::Rights;
using ::testing::HasSubstr;
using namespace std::chrono_literals;
constexpr auto kTimeout = 30s;

/// A control socket for clients with the same rights, which are this process.
class Control : public ::testing::Test {
 protected:
  void serve(Rights rights) {
    std::filesystem::create_directory(folder_);
    const dns::Name own = dns::Name::from_text("own.test.").value();
    ControlServer::Callbacks callbacks;
    callbacks.rights_of = [rights](std::uint32_t uid) {
      return uid == ::getuid() ? rights : Rights::kNone;
    };
    config::Http http;
    http.keys.push_back({.name = "panel", .role = config::HttpKey::Role::kWrite, .zones = {own}});
    callbacks.restrict = [http](ipc::ControlRequest& request) {
      return restrict_http_user(http, request);
    };
    callbacks.handler = [this](const ipc::ControlRequest& request,
                               const ControlServer::Reply& reply) {
      if (request.verb == ipc::verb::kReload) return held_.push_back(reply);
      struct stat file{};
      if (request.descriptor) ::fstat(request.descriptor->get(), &file);
      reply(nlohmann::json{
          {"session", request.session}, {"zones", request.zones.size()}, {"inode", file.st_ino}});
    };
    callbacks.ended = [this](std::uint64_t session) { ended_.push_back(session); };
    auto opened = ControlServer::open(io_, pool_, folder_, std::nullopt, std::move(callbacks));
    ASSERT_TRUE(opened) << opened.error().text;
    server_ = std::move(*opened);
    thread_ = std::thread([this] { io_.run(); });
  }
  ~Control() override {
    asio::post(io_, [this] { io_.stop(); });
    if (thread_.joinable()) thread_.join();
    pool_.join();
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  [[nodiscard]] Fd connect() const { return ipc::connect_control(folder_).value(); }
  /// The session that the handler saw, or the error.
  static std::string ask(const Fd& client, ipc::ControlRequest request) {
    const auto result = ipc::call(client.get(), request, kTimeout);
    return result ? result->at("session").dump() : result.error().text;
  }
  static std::string ask(const Fd& client, std::string_view verb, std::string name = "") {
    return ask(client, {.verb = std::string(verb), .name = std::move(name)});
  }
  /// Sends a request without waiting for its reply.
  static void send(const Fd& client, const ipc::ControlRequest& request) {
    const auto sent = ipc::send_json(client.get(), ipc::request_to_json(request), kTimeout);
    ASSERT_TRUE(sent) << sent.error().text;
  }
  static void send(const Fd& client, std::string_view verb) {
    send(client, {.verb = std::string(verb)});
  }
  /// The next reply.
  static nlohmann::json receive(const Fd& client) {
    auto reply = ipc::receive_json(client.get(), ipc::kMaxReplyBytes, kTimeout);
    EXPECT_TRUE(reply) << reply.error().text;
    return reply ? std::move(*reply) : nlohmann::json();
  }
  /// The result of `read` on the server's thread.
  template <class Read>
  auto on_server(Read read) {
    std::promise<decltype(read())> result;
    asio::post(io_, [&] { result.set_value(read()); });
    return result.get_future().get();
  }
  std::vector<std::uint64_t> ended() {
    return on_server([this] { return ended_; });
  }
  /// Requests `reload` that have no reply yet.
  std::size_t held() {
    return on_server([this] { return held_.size(); });
  }
  /// Replies to those; the result is a number that counts up.
  void release() {
    on_server([this] {
      for (const ControlServer::Reply& reply : std::exchange(held_, {})) reply(released_++);
      return true;
    });
  }

  std::string folder_ = (std::filesystem::temp_directory_path() /
                         fmt::format("pando-control-{}", ::getpid())).string();
  asio::io_context io_;
  asio::thread_pool pool_{1};
  std::vector<ControlServer::Reply> held_;
  int released_ = 0;
  std::vector<std::uint64_t> ended_;
  std::unique_ptr<ControlServer> server_;
  std::thread thread_;
};

TEST_F(Control, ADescriptorComesWithItsOwnRequest) {
  serve(Rights::kAll);
  const Fd client = connect();
  const auto inode_of = [&client](const ipc::ControlRequest& request) {
    const auto result = ipc::call(client.get(), request, kTimeout);
    return result ? result->at("inode").get<ino_t>() : 0;
  };
  ipc::ControlRequest request{.verb = "status"};
  request.descriptor = std::make_shared<const Fd>(::open(folder_.c_str(), O_PATH | O_CLOEXEC));
  struct stat folder{};
  ASSERT_EQ(::fstat(request.descriptor->get(), &folder), 0);
  EXPECT_EQ(inode_of(request), folder.st_ino);
  EXPECT_EQ(inode_of({.verb = "status"}), 0U);
  request.zones.assign(10, "\"" + std::string(30'000, 'z') + "\"");  // more packets than one
  EXPECT_EQ(inode_of(request), folder.st_ino);
}

TEST_F(Control, AnEditorReachesTheRecordsOfItsZones) {
  serve(Rights::kEdit);
  const Fd client = connect();
  for (const std::string_view verb :
       {ipc::verb::kZoneSet, ipc::verb::kZoneUnset, ipc::verb::kZoneNotify,
        ipc::verb::kZoneRefresh, ipc::verb::kZoneRetransfer, ipc::verb::kStatus})
    EXPECT_EQ(ask(client, verb, "OWN.test"), "1") << verb;
  for (const std::string_view verb :
       {ipc::verb::kZoneBegin, ipc::verb::kZoneCommit, ipc::verb::kZoneAbort})
    EXPECT_EQ(ask(client, {.verb = std::string(verb), .names = {"own.test."}}), "1") << verb;
  EXPECT_EQ(ask(connect(), ipc::verb::kStatus), "2");
}

TEST_F(Control, AnEditorReachesNothingElse) {
  serve(Rights::kEdit);
  const Fd client = connect();
  EXPECT_THAT(ask(client, ipc::verb::kZoneSet, "other.test."),
              HasSubstr("no key of http.keys may change other.test."));
  EXPECT_THAT(ask(client, {.verb = std::string(ipc::verb::kZoneBegin),
                           .names = {"own.test.", "other.test."}}),
              HasSubstr("may change other.test."));
  EXPECT_THAT(ask(client, {.verb = std::string(ipc::verb::kZoneCommit), .name = "other.test.",
                           .names = {"own.test."}}),
              HasSubstr("may change other.test."));
  EXPECT_THAT(ask(client, ipc::verb::kZoneSet, "a..b"), HasSubstr("a..b"));
  for (const std::string_view verb :
       {ipc::verb::kStop, ipc::verb::kReload, ipc::verb::kHandOver, ipc::verb::kZoneExport,
        ipc::verb::kZoneRollback, ipc::verb::kZoneSnapshot,
        ipc::verb::kZoneSnapshotDelete, ipc::verb::kStoreCopy, ipc::verb::kStoreDump,
        ipc::verb::kStoreCheckpoint, ipc::verb::kStoreAudit, ipc::verb::kWorkerAdd,
        ipc::verb::kWorkerRemove, ipc::verb::kZoneRead, ipc::verb::kExplain})
    EXPECT_THAT(ask(client, verb, "own.test."), HasSubstr("may only read")) << verb;
}

TEST_F(Control, AReaderEditsNothing) {
  serve(Rights::kRead);
  const Fd client = connect();
  EXPECT_EQ(ask(client, ipc::verb::kStatus), "0");
  EXPECT_THAT(ask(client, ipc::verb::kZoneSet, "own.test."), HasSubstr("may only read"));
}

TEST_F(Control, TheEndOfAConnectionIsTold) {
  serve(Rights::kEdit);
  Fd client = connect();
  ASSERT_EQ(ask(client, ipc::verb::kStatus), "1");
  EXPECT_EQ(ended(), std::vector<std::uint64_t>{});
  client.reset();
  while (ended().empty()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(ended(), std::vector<std::uint64_t>{1});
  Fd rude = connect();
  ASSERT_EQ(ask(rude, ipc::verb::kStatus), "2");
  ASSERT_EQ(::write(rude.get(), "?", 1), 1) << "a malformed packet ends the connection, too";
  while (ended().size() < 2) std::this_thread::sleep_for(1ms);
  rude.reset();
  ASSERT_EQ(ask(connect(), ipc::verb::kStatus), "3");
  EXPECT_EQ(ended()[1], 2U);
}

TEST_F(Control, AnOperatorHasNoSession) {
  serve(Rights::kAll);
  Fd client = connect();
  EXPECT_EQ(ask(client, ipc::verb::kZoneSet, "other.test."), "0");
  EXPECT_EQ(ask(client, ipc::verb::kStop), "0");
  client.reset();
  EXPECT_EQ(ask(connect(), ipc::verb::kStatus), "0");
  while (ended().empty()) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(ended().front(), 1U) << "its transactions may be tied to the connection";
}

TEST_F(Control, RepliesComeInTheOrderOfTheRequests) {
  serve(Rights::kAll);
  const Fd client = connect();
  send(client, ipc::verb::kReload);
  send(client, ipc::verb::kStatus);
  send(client, ipc::verb::kReload);
  EXPECT_EQ(ask(connect(), ipc::verb::kStatus), "0") << "others do not wait";
  while (held() < 2) std::this_thread::sleep_for(1ms);
  release();
  EXPECT_EQ(receive(client)["result"], 0);
  EXPECT_EQ(receive(client)["result"]["session"], 0);
  EXPECT_EQ(receive(client)["result"], 1);
}

TEST_F(Control, ALongRequestIsAnsweredInItsTurn) {
  serve(Rights::kAll);
  const Fd client = connect();
  ipc::ControlRequest request{.verb = std::string(ipc::verb::kZoneAdd)};
  for (int i = 0; i < 5000; ++i)
    request.zones.push_back(fmt::format(R"({{"name": "zone{}.test", "file": "a.zone"}})", i));
  send(client, request);
  send(client, ipc::verb::kStatus);
  EXPECT_EQ(receive(client)["result"]["zones"], 5000);
  EXPECT_EQ(receive(client)["result"]["zones"], 0);
}

TEST_F(Control, ALongRequestThatIsNoJsonEndsTheConnection) {
  serve(Rights::kAll);
  const Fd client = connect();
  const std::string packet = "." + std::string(100'000, '[');
  ASSERT_EQ(::send(client.get(), packet.data(), packet.size(), 0), std::ssize(packet));
  EXPECT_FALSE(ipc::receive_json(client.get(), ipc::kMaxReplyBytes, kTimeout));
  while (ended().empty()) std::this_thread::sleep_for(1ms);
}

TEST_F(Control, AConnectionHasSoManyRequestsUnderWay) {
  serve(Rights::kAll);
  const Fd client = connect();
  constexpr std::size_t kMaxWaiting = ControlServer::kMaxUnanswered;
  for (std::size_t i = 0; i < kMaxWaiting + 10; ++i) send(client, ipc::verb::kReload);
  while (held() < kMaxWaiting) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(ask(connect(), ipc::verb::kStatus), "0") << "others are served meanwhile";
  EXPECT_EQ(held(), kMaxWaiting);
  release();
  while (held() < 10) std::this_thread::sleep_for(1ms);
  release();
  for (std::size_t i = 0; i < kMaxWaiting + 10; ++i) EXPECT_EQ(receive(client)["result"], i);
}

TEST_F(Control, AClientThatDoesNotReadLosesItsConnection) {
  serve(Rights::kAll);
  const Fd client = connect();
  for (int i = 0; i < 3; ++i) send(client, ipc::verb::kReload);
  while (held() < 3) std::this_thread::sleep_for(1ms);
  on_server([this] {
    for (const ControlServer::Reply& reply : std::exchange(held_, {}))
      reply(std::string(ipc::kMaxReplyBytes, 'x'));
    return true;
  });
  while (ended().empty()) std::this_thread::sleep_for(1ms);
}

}  // namespace control_server_test
}  // namespace pando::manager
