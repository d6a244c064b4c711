// Real worker processes under the manager's side of sockets and supervision: nothing that reached a
// socket may get lost when workers die, come, go, or outlive their manager.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <set>

#include "manager/workers/listening_socket.h"
#include "shm/slot_guard.h"
#include "tests/process/load.h"
#include "tests/process/mini_manager.h"
#include "tests/support/trees.h"

extern char** environ;

namespace pando {
namespace {

/// Exit code of a worker that the manager has no use for (docs/reference/pando-worker.md).
constexpr int kNotWanted = 3;

using dns::RRType;
using ipc::Counter;
using pando::testing::ask_udp;
using pando::testing::Load;
using pando::testing::MiniManager;
using pando::testing::name;
using pando::testing::Query;
using pando::testing::read_response;
using pando::testing::RunDirectory;
using pando::testing::TcpClient;
using pando::testing::TestZone;
using pando::testing::ZoneStore;
using State = manager::WorkerStatus::State;

std::string zone_text(int names) {
  std::string text =
      "$TTL 300\n@ SOA ns1 admin 2026 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.1\n"
      "www A 192.0.2.80\n";
  for (int i = 0; i < names; ++i)
    text += "host" + std::to_string(i) + " A 192.0.2." + std::to_string(i % 250) + "\n";
  return text;
}

std::vector<TestZone> zones(int names) {
  TestZone zone{"example.com.", zone_text(names)};
  zone.settings.allow_transfer = {pando::testing::allow_all()};
  zone.settings.allow_update = {pando::testing::allow_all()};
  return {zone};
}

dns::TsigKey key(const char* key_name) {
  return {name(key_name), dns::TsigAlgorithm::kSha256, Bytes(32, 0x42)};
}

class Workers : public ::testing::Test {
 protected:
  explicit Workers(int names = 10) : store_(zones(names)) {}
  ~Workers() override {
    if (manager_) manager_->stop();
  }
  void start(MiniManager::Options options = {}) {
    const std::uint32_t count = options.workers;
    const bool external = options.external;
    manager_ =
        std::make_unique<MiniManager>(store_, directory_.path(), server_, std::move(options));
    if (!external) {
      ASSERT_TRUE(manager_->wait_serving(count));
    }
  }
  void start_workers(std::uint32_t count) {
    MiniManager::Options options;
    options.workers = count;
    start(std::move(options));
  }
  /// A slot's datagrams as its worker counts them.
  std::uint64_t queries_of(std::uint32_t slot) {
    return manager_->counter(slot, Counter::kQueriesUdp);
  }
  /// A worker that no manager has started.
  pid_t spawn_by_hand(std::uint32_t slot) const {
    const std::string number = std::to_string(slot);
    const std::string binary = pando::tests::build_path("/pando-worker");
    const char* words[] = {
        binary.c_str(), "--slot", number.c_str(), "--run-directory", directory_.path().c_str(),
        nullptr};
    pid_t pid = 0;
    EXPECT_EQ(
        ::posix_spawn(&pid, binary.c_str(), nullptr, nullptr, const_cast<char**>(words), environ),
        0);
    return pid;
  }
  bool answers() const {
    const Bytes response = ask_udp(server_, Query{}.octets());
    return response.size() > dns::kHeaderOctets && read_response(response).answer.size() == 1;
  }

  ZoneStore store_;
  RunDirectory directory_;
  Endpoint server_ = pando::testing::free_port();
  std::unique_ptr<MiniManager> manager_;
};

// Service
// ------------------------------------------------------------------------------------------

TEST_F(Workers, AnswerOverUdpAndTcp) {
  start_workers(1);
  EXPECT_TRUE(answers());
  const TcpClient client(server_);
  ASSERT_TRUE(client.send(Query{.id = 7}.octets()));
  const auto response = read_response(client.receive());
  EXPECT_EQ(response.header.id, 7);
  EXPECT_EQ(response.answer.size(), 1U);
}

TEST_F(Workers, AnswerPipelinedQueriesInPiecesOfAnySize) {
  start_workers(1);
  Bytes stream;
  for (std::uint16_t id = 1; id <= 50; ++id) {
    const Bytes query = Query{.id = id}.octets();
    append_be16(stream, static_cast<std::uint16_t>(query.size()));
    append(stream, query);
  }
  const TcpClient client(server_);
  for (std::size_t at = 0; at < stream.size(); at += 13)
    ASSERT_TRUE(
        client.send_bytes({stream.data() + at, std::min<std::size_t>(13, stream.size() - at)}));
  for (std::uint16_t id = 1; id <= 50; ++id)
    EXPECT_EQ(read_response(client.receive()).header.id, id);
}

TEST_F(Workers, CloseAConnectionThatSendsWhatIsNoMessage) {
  start_workers(1);
  for (const Bytes& garbage : {Bytes{0, 0}, Bytes{0, 5, 1, 2, 3, 4, 5}}) {
    const TcpClient client(server_);
    ASSERT_TRUE(client.send_bytes(garbage));
    EXPECT_TRUE(client.closed());
  }
  const TcpClient client(server_);
  ASSERT_TRUE(client.send(Query{.qr = true}.octets()));
  EXPECT_TRUE(client.closed());
}

TEST_F(Workers, StillAnswerAClientThatHasShutItsSideDown) {
  start_workers(1);
  const TcpClient client(server_);
  ASSERT_TRUE(client.send(Query{.id = 9}.octets()));
  ::shutdown(client.native(), SHUT_WR);
  EXPECT_EQ(read_response(client.receive()).header.id, 9);
  EXPECT_TRUE(client.closed());
}

TEST_F(Workers, StopReadingFromAClientThatDoesNotReadItsAnswers) {
  start_workers(1);
  const TcpClient client(server_);
  ::fcntl(client.native(), F_SETFL, O_NONBLOCK);
  Bytes framed;
  const Bytes query = Query{}.octets();
  append_be16(framed, static_cast<std::uint16_t>(query.size()));
  append(framed, query);
  Bytes many;
  for (int i = 0; i < 1000; ++i) append(many, framed);
  // Kernel buffers and the worker's bounds fill up; then the worker takes no more.
  std::uint64_t taken = 0;
  for (int stalls = 0; stalls < 100;) {
    const ssize_t sent = ::send(client.native(), many.data(), many.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      taken += static_cast<std::uint64_t>(sent);
      stalls = 0;
    } else {
      ++stalls;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    ASSERT_LT(taken, 64U << 20) << "nothing stops the client";
  }
  EXPECT_TRUE(answers());  // and others are served
}

// Transfers
// ----------------------------------------------------------------------------------------

class ManyNames : public Workers {
 protected:
  ManyNames() : Workers(20000) {}

  /// Reads a transfer to its closing SOA; owner names of all records.
  std::vector<std::string> read_transfer(const TcpClient& client, dns::TsigSession* session) {
    std::vector<std::string> owners;
    int soas = 0;
    while (soas < 2) {
      const Bytes message = client.receive();
      if (message.empty()) break;
      if (session != nullptr) {
        const auto verified = session->verify_response(message, now());
        EXPECT_TRUE(verified) << (verified ? "" : verified.error().text);
        if (!verified) break;
      }
      const auto response = read_response(message);
      EXPECT_EQ(response.rcode, 0);
      if (response.rcode != 0) break;
      for (const auto& record : response.answer) {
        owners.push_back(dns::to_text(record.owner));
        if (record.type == RRType::kSOA) ++soas;
      }
    }
    return owners;
  }
  static std::uint64_t now() { return static_cast<std::uint64_t>(::time(nullptr)); }
};

TEST_F(ManyNames, TransferWholeWithSoaFirstAndLast) {
  start_workers(1);
  const TcpClient client(server_);
  ASSERT_TRUE(client.send(Query{.qname = "example.com.", .qtype = RRType::kAXFR}.octets()));
  const auto owners = read_transfer(client, nullptr);
  EXPECT_EQ(owners.size(), 20000U + 5);
  EXPECT_EQ(owners.front(), "example.com.");
  EXPECT_EQ(owners.back(), "example.com.");
  EXPECT_EQ(std::set<std::string>(owners.begin(), owners.end()).size(), 20000U + 3);
  // The connection serves on.
  ASSERT_TRUE(client.send(Query{.id = 5}.octets()));
  EXPECT_EQ(read_response(client.receive()).header.id, 5);
}

TEST_F(ManyNames, TransferSignedByTheWorkerVerifies) {
  MiniManager::Options options;
  options.keys.shared = {key("transfer.")};
  start(std::move(options));
  dns::TsigKeyring ring;
  ASSERT_TRUE(ring.add(key("transfer.")));
  auto session = dns::TsigSession::for_request(*ring.find(name("transfer.")));
  Bytes query = Query{.qname = "example.com.", .qtype = RRType::kAXFR}.octets();
  ASSERT_TRUE(session.sign(query, now()));
  const TcpClient client(server_);
  ASSERT_TRUE(client.send(query));
  EXPECT_EQ(read_transfer(client, &session).size(), 20000U + 5);
  EXPECT_TRUE(session.finish());
}

TEST_F(ManyNames, TransferSignedWithAKeyOfTheManagersVerifies) {
  auto ring = std::make_shared<dns::TsigKeyring>();
  ASSERT_TRUE(ring->add(key("update.")));
  MiniManager::Options options;
  options.keys.held = {{name("update."), dns::TsigAlgorithm::kSha256}};
  options.hooks.keyring = [ring] { return ring; };
  start(std::move(options));
  auto session = dns::TsigSession::for_request(*ring->find(name("update.")));
  Bytes query = Query{.qname = "example.com.", .qtype = RRType::kAXFR}.octets();
  ASSERT_TRUE(session.sign(query, now()));
  const TcpClient client(server_);
  ASSERT_TRUE(client.send(query));
  EXPECT_EQ(read_transfer(client, &session).size(), 20000U + 5);
  EXPECT_TRUE(session.finish());
}

TEST_F(ManyNames, TransferWithAForgedSignatureOfAHeldKeyGetsNoRecords) {
  auto ring = std::make_shared<dns::TsigKeyring>();
  ASSERT_TRUE(ring->add(key("update.")));
  MiniManager::Options options;
  options.keys.held = {{name("update."), dns::TsigAlgorithm::kSha256}};
  options.hooks.keyring = [ring] { return ring; };
  start(std::move(options));
  dns::TsigKeyring forged;
  ASSERT_TRUE(forged.add({name("update."), dns::TsigAlgorithm::kSha256, Bytes(32, 1)}));
  auto session = dns::TsigSession::for_request(*forged.find(name("update.")));
  Bytes query = Query{.qname = "example.com.", .qtype = RRType::kAXFR}.octets();
  ASSERT_TRUE(session.sign(query, now()));
  const TcpClient client(server_);
  ASSERT_TRUE(client.send(query));
  const auto response = read_response(client.receive());
  EXPECT_EQ(response.rcode, static_cast<std::uint16_t>(dns::Rcode::kNotAuth));
  EXPECT_TRUE(response.answer.empty());
}

TEST_F(ManyNames, AClientThatLeavesATransferCostsNothingButIt) {
  start_workers(1);
  for (int i = 0; i < 200; ++i) {  // more than there are leases
    const TcpClient client(server_);
    ASSERT_TRUE(client.send(Query{.qname = "example.com.", .qtype = RRType::kAXFR}.octets()));
    ASSERT_FALSE(client.receive().empty());
  }
  const TcpClient client(server_);
  ASSERT_TRUE(client.send(Query{.qname = "example.com.", .qtype = RRType::kAXFR}.octets()));
  EXPECT_EQ(read_transfer(client, nullptr).size(), 20000U + 5);
}

// The manager's part
// -------------------------------------------------------------------------------

TEST_F(Workers, RelayUpdatesAndTheirAnswersOverUdpAndTcp) {
  MiniManager::Options options;
  options.workers = 1;
  options.hooks.forward = [](std::uint32_t, ipc::Forward&& request,
                             const manager::ForwardReply& reply) {
    Bytes response = request.message;
    response[2] |= 0x80;
    response[3] = static_cast<std::uint8_t>(request.kind == ipc::ForwardKind::kUpdate ? 9 : 8);
    reply(std::move(response));
  };
  start(std::move(options));
  const Bytes update =
      Query{.id = 77, .opcode = 5, .qname = "example.com.", .qtype = RRType::kSOA}.octets();
  EXPECT_EQ(read_response(ask_udp(server_, update)).rcode, 9);
  const TcpClient client(server_);
  ASSERT_TRUE(client.send(update));
  const auto response = read_response(client.receive());
  EXPECT_EQ(response.rcode, 9);
  EXPECT_EQ(response.header.id, 77);
}

TEST_F(Workers, KeepAnsweringWithoutAManagerAndSayServfailToUpdates) {
  start_workers(2);
  manager_.reset();  // as a crash
  EXPECT_TRUE(answers());
  const Bytes update = Query{.opcode = 5, .qname = "example.com.", .qtype = RRType::kSOA}.octets();
  EXPECT_EQ(read_response(ask_udp(server_, update)).rcode,
            static_cast<std::uint16_t>(dns::Rcode::kServFail));
  start_workers(2);  // adopt them, so that they are stopped at the end
}

TEST_F(Workers, AnUpdateUnderWayWhenTheManagerDiesIsServfail) {
  std::promise<void> arrived;
  MiniManager::Options options;
  options.workers = 1;
  options.hooks.forward = [&](std::uint32_t, ipc::Forward&&, const manager::ForwardReply&) {
    arrived.set_value();
  };
  start(std::move(options));
  auto answer = std::async(std::launch::async, [&] {
    return ask_udp(server_,
                   Query{.opcode = 5, .qname = "example.com.", .qtype = RRType::kSOA}.octets());
  });
  arrived.get_future().get();
  manager_.reset();
  EXPECT_EQ(read_response(answer.get()).rcode, static_cast<std::uint16_t>(dns::Rcode::kServFail));
  start_workers(1);
}

TEST_F(Workers, ANewManagerAdoptsLivingWorkersAndLosesNoQuery) {
  start_workers(2);
  const int first = manager_->pid_of(0);
  const int second = manager_->pid_of(1);
  Load load(server_, 32);
  load.wait_for(500);
  manager_.reset();
  load.wait_for(500);
  start_workers(2);
  load.wait_for(500);
  load.stop();
  EXPECT_EQ(load.lost(), 0U);
  EXPECT_EQ(manager_->pid_of(0), first);
  EXPECT_EQ(manager_->pid_of(1), second);
  for (const auto& worker : manager_->status()) EXPECT_TRUE(worker.adopted);
}

TEST_F(Workers, ANewManagerStartsOnlyWhatIsMissing) {
  start_workers(3);
  const int adopted = manager_->pid_of(1);
  const int victims[] = {manager_->pid_of(0), manager_->pid_of(2)};
  manager_.reset();
  for (const int pid : victims) ASSERT_EQ(::kill(pid, SIGKILL), 0);
  for (const int pid : victims)
    ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);  // children of this test
  start_workers(3);
  EXPECT_EQ(manager_->pid_of(1), adopted);
  EXPECT_NE(manager_->pid_of(0), victims[0]);
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(answers());
}

TEST_F(Workers, OneThatIsStillStartingIsAdoptedNotStartedTwice) {
  MiniManager::Options options;
  options.workers = 1;
  manager_ = std::make_unique<MiniManager>(store_, directory_.path(), server_, options);
  const int pid = manager_->pid_of(0);
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);  // before it has attached to the store
  manager_.reset();
  manager_ = std::make_unique<MiniManager>(store_, directory_.path(), server_, options);
  ASSERT_EQ(::kill(pid, SIGCONT), 0);
  ASSERT_TRUE(manager_->wait_serving(1));
  EXPECT_EQ(manager_->pid_of(0), pid);
  EXPECT_TRUE(answers());
}

TEST_F(Workers, AManagersLifeCutShortAtAnyMomentLeavesNoSocketWithoutAReader) {
  MiniManager::Options options;
  options.workers = 3;
  for (int life = 0; life < 8; ++life) {
    manager_ = std::make_unique<MiniManager>(store_, directory_.path(), server_, options);
    std::this_thread::sleep_for(std::chrono::milliseconds(15 * life));
    manager_.reset();
  }
  start_workers(3);
  std::set<int> pids;
  for (const auto& worker : manager_->status()) pids.insert(worker.pid);
  for (int life = 0; life < 3; ++life) {
    manager_.reset();
    start_workers(3);
  }
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(answers());  // each from another port
  for (const auto& worker : manager_->status()) EXPECT_TRUE(pids.contains(worker.pid));
  for (const auto& worker : manager_->status()) EXPECT_EQ(worker.restarts, 0U);
}

TEST_F(Workers, ASecondOneInASlotIsSentAway) {
  start_workers(1);
  const int first = manager_->pid_of(0);
  const pid_t second = spawn_by_hand(0);
  int code = -1;
  ASSERT_EQ(::waitpid(second, &code, 0), second);
  EXPECT_TRUE(WIFEXITED(code) && WEXITSTATUS(code) == kNotWanted);
  EXPECT_EQ(manager_->pid_of(0), first);
  EXPECT_TRUE(answers());
}

TEST_F(Workers, OnesThatTheManagerDidNotStartGetNoSlot) {
  start_workers(1);
  const auto before = manager_->status();
  for (const std::uint32_t slot : {1U, 7U}) {
    const pid_t stranger = spawn_by_hand(slot);
    int code = -1;
    ASSERT_EQ(::waitpid(stranger, &code, 0), stranger);  // it is told to leave
    EXPECT_TRUE(WIFEXITED(code) && WEXITSTATUS(code) == kNotWanted);
  }
  ASSERT_EQ(manager_->status().size(), 1U);
  EXPECT_EQ(manager_->pid_of(0), before[0].pid);
  EXPECT_TRUE(answers());
}

TEST_F(Workers, OneThatComesWhileADeadOnesSlotIsEmptyGetsNothing) {
  MiniManager::Options options;
  options.worker_binary = "/bin/false";
  options.workers = 1;
  manager_ = std::make_unique<MiniManager>(store_, directory_.path(), server_, std::move(options));
  ASSERT_TRUE(MiniManager::wait([&] { return manager_->status()[0].restarts >= 3; }));
  const pid_t stranger = spawn_by_hand(0);
  ASSERT_EQ(::waitpid(stranger, nullptr, 0), stranger);
  EXPECT_EQ(manager_->serving(), 0U);
}

TEST_F(Workers, AnAdoptedWorkersSlotIsKeptForTheProcessThatItsPageNames) {
  start_workers(1);
  const int adopted = manager_->pid_of(0);
  ASSERT_EQ(::kill(adopted, SIGSTOP), 0);  // the stranger comes first
  manager_.reset();
  const pid_t stranger = spawn_by_hand(0);
  MiniManager::Options options;
  options.workers = 1;
  manager_ = std::make_unique<MiniManager>(store_, directory_.path(), server_, options);
  ASSERT_EQ(::waitpid(stranger, nullptr, 0), stranger);
  EXPECT_EQ(manager_->serving(), 0U);
  ASSERT_EQ(::kill(adopted, SIGCONT), 0);
  ASSERT_TRUE(manager_->wait_serving(1));
  EXPECT_EQ(manager_->pid_of(0), adopted);
  EXPECT_TRUE(manager_->status()[0].adopted);
  EXPECT_TRUE(answers());
}

TEST_F(Workers, AnAdoptedWorkerCanBeRemovedWithoutLoss) {
  start_workers(3);
  for (int managers = 0; managers < 2; ++managers) {
    manager_.reset();
    start_workers(3);
  }
  Load load(server_, 32);
  load.wait_for(500);
  manager_->remove(0);
  load.wait_for(500);
  load.stop();
  EXPECT_EQ(load.lost(), 0U);
  EXPECT_EQ(manager_->serving(), 2U);
}

/// Clients of one query each, every one from a port of its own.
class Clients {
 public:
  Clients(const Endpoint& server, int count) {
    sockaddr_storage address;
    const socklen_t length = server.to_sockaddr(address);
    const Bytes query = Query{}.octets();
    for (int i = 0; i < count; ++i) {
      sockets_.emplace_back(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      EXPECT_EQ(::sendto(sockets_.back().get(), query.data(), query.size(), 0,
                         reinterpret_cast<sockaddr*>(&address), length),
                static_cast<ssize_t>(query.size()));
    }
  }
  /// How many have an answer.
  [[nodiscard]] int answered() const {
    int count = 0;
    for (const auto& socket : sockets_) {
      pollfd ready{socket.get(), POLLIN, 0};
      if (::poll(&ready, 1, 10'000) == 1) ++count;
    }
    return count;
  }

 private:
  std::vector<Fd> sockets_;
};

// Death
// --------------------------------------------------------------------------------------------

TEST_F(Workers, AKilledWorkersQueueGoesToItsSuccessor) {
  start_workers(1);
  const int victim = manager_->pid_of(0);
  ASSERT_EQ(::kill(victim, SIGSTOP), 0);
  const Clients clients(server_, 400);  // their queries wait in the stopped worker's socket
  ASSERT_EQ(::kill(victim, SIGKILL), 0);
  EXPECT_EQ(clients.answered(), 400);
  EXPECT_NE(manager_->pid_of(0), victim);
}

TEST_F(Workers, WhatADeadOneHadReadIsAnsweredByItsSuccessor) {
  for (const char* const place : {"worker-received:20", "worker-answered:20"}) {
    ::setenv("PANDO_CRASH_AT", place, 1);
    start_workers(1);
    ::unsetenv("PANDO_CRASH_AT");
    const int victim = manager_->pid_of(0);
    Load load(server_, 32);
    load.wait_for(3000);
    load.stop();
    EXPECT_EQ(load.lost(), 0U) << place;
    EXPECT_NE(manager_->pid_of(0), victim) << place;
    EXPECT_GT(manager_->counter(0, Counter::kInherited), 0U) << place;
    manager_->stop();
  }
}

TEST_F(Workers, KilledOneAfterTheOtherUnderLoadTheyLoseNothing) {
  start_workers(2);
  Load load(server_, 16);
  for (int i = 0; i < 6; ++i) {
    load.wait_for(1000);
    ::kill(manager_->pid_of(static_cast<std::uint32_t>(i % 2)), SIGKILL);
    ASSERT_TRUE(manager_->wait_serving(2));
  }
  load.stop();
  EXPECT_EQ(load.lost(), 0U);
}

TEST_F(Workers, OneThatCutsItsSlotOffIsReplacedAndTheManagerGoesOn) {
  ASSERT_TRUE(shm::install_slot_guard());
  start_workers(2);
  const int victim = manager_->pid_of(0);
  const int other = manager_->pid_of(1);
  // Stopped, it cannot fall over the hole itself: the manager has to see it.
  ASSERT_EQ(::kill(victim, SIGSTOP), 0);
  ASSERT_EQ(::truncate((directory_.path() + "/0.slot").c_str(), 0), 0);
  ASSERT_TRUE(MiniManager::wait([&] {
    const int now = manager_->pid_of(0);
    return now != victim && now != 0 && manager_->serving() == 2;
  }));
  EXPECT_EQ(manager_->pid_of(1), other);
  EXPECT_TRUE(MiniManager::wait([&] { return answers() && queries_of(0) > 0; }))
      << "the new page counts again";
}

TEST_F(Workers, AWorkerThatCannotStartIsTriedWithPauses) {
  MiniManager::Options options;
  options.worker_binary = "/bin/false";
  options.workers = 1;
  const auto began = std::chrono::steady_clock::now();
  manager_ = std::make_unique<MiniManager>(store_, directory_.path(), server_, std::move(options));
  ASSERT_TRUE(MiniManager::wait([&] { return manager_->status()[0].restarts >= 5; }));
  // 100 ms lie between two restarts; a slow machine makes them longer.
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(400));
}

// Coming and going
// ---------------------------------------------------------------------------------

TEST_F(Workers, AnAddedWorkerGetsItsShare) {
  start_workers(1);
  const auto slot = manager_->run([&] { return manager_->pool().add().value(); });
  ASSERT_TRUE(manager_->wait_serving(2));
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(answers());  // each from another port
  EXPECT_GT(queries_of(slot), 30U);
  EXPECT_GT(queries_of(0), 30U);
}

TEST_F(Workers, RemovedUnderLoadTheyLoseNothing) {
  start_workers(3);
  Load load(server_, 64);
  load.wait_for(2000);
  manager_->remove(1);
  load.wait_for(2000);
  manager_->remove(2);
  load.wait_for(2000);
  load.stop();
  EXPECT_EQ(load.lost(), 0U);
  EXPECT_EQ(manager_->serving(), 1U);
}

TEST_F(Workers, AQueryThatArrivesAfterTheLastLookIntoALeavingSocketIsAnswered) {
  start_workers(2);
  const int leaving = manager_->pid_of(1);
  ASSERT_EQ(::kill(leaving, SIGSTOP), 0);
  Clients early(server_, 64);  // about half of them wait in slot 1
  std::promise<void> removed;
  manager_->run([&] { EXPECT_TRUE(manager_->pool().remove(1, [&] { removed.set_value(); })); });
  ASSERT_EQ(::kill(leaving, SIGKILL), 0);
  EXPECT_EQ(early.answered(), 64);  // worker 0 has read them; it looks twice and says so
  Clients late = manager_->run([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // its word waits to be read here
    for (const auto& socket : manager_->listeners().of(1))
      manager::detach_steering(socket.fd.get());
    return Clients(server_, 64);
  });
  EXPECT_EQ(late.answered(), 64);
  removed.get_future().get();
  EXPECT_TRUE(manager_->listeners().of(1).empty());
}

TEST_F(Workers, AddedAndRemovedManyTimesUnderLoadTheyLoseNothing) {
  start_workers(2);
  Load load(server_, 32);
  for (int i = 0; i < 5; ++i) {
    const auto slot = manager_->run([&] { return manager_->pool().add().value(); });
    ASSERT_TRUE(manager_->wait_serving(3));
    load.wait_for(300);
    manager_->remove(i % 2 == 0 ? slot : 0);
    if (i % 2 != 0) {
      manager_->run([&] { manager_->pool().set_count(2); });
      ASSERT_TRUE(manager_->wait_serving(2));
    }
  }
  load.stop();
  EXPECT_EQ(load.lost(), 0U);
}

TEST_F(Workers, NewConnectionsDuringARemovalAreServed) {
  start_workers(2);
  std::atomic<bool> stopping{false};
  std::atomic<int> served{0};
  std::atomic<int> failed{0};
  std::thread clients([&] {
    while (!stopping) {
      const TcpClient client(server_);
      const bool good = client.connected() && client.send(Query{}.octets()) &&
                        client.receive().size() > dns::kHeaderOctets;
      ++(good ? served : failed);
    }
  });
  MiniManager::wait([&] { return served > 50; });
  manager_->remove(1);
  const int then = served;
  MiniManager::wait([&] { return served > then + 50; });
  stopping = true;
  clients.join();
  EXPECT_EQ(failed, 0);
}

TEST_F(Workers, StopEndsAllOfThem) {
  start_workers(2);
  std::vector<int> pids;
  for (const auto& worker : manager_->status()) pids.push_back(worker.pid);
  manager_->stop();
  for (const int pid : pids) EXPECT_NE(::kill(pid, 0), 0);
  manager_.reset();
}

TEST_F(Workers, AListenAddressCanChangeWhileTheyServe) {
  start_workers(2);
  const Endpoint before = server_;
  server_ = Endpoint{server_.address, static_cast<std::uint16_t>(server_.port + 1)};
  manager_->run([&] {
    const auto change = manager_->listeners().set_addresses({{before, server_}, {}});
    EXPECT_TRUE(change.errors.empty());
    manager_->pool().sockets_changed(change);
  });
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(answers());
  manager_->run([&] {
    manager_->pool().sockets_changed(manager_->listeners().set_addresses({{server_}, {}}));
  });
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(answers());
}

// External workers
// ---------------------------------------------------------------------------------

class ExternalWorkers : public Workers {
 protected:
  ~ExternalWorkers() override {
    for (const auto& [slot, pid] : processes_) end(pid, SIGTERM);
  }
  void spawn(std::uint32_t slot) { processes_[slot] = spawn_by_hand(slot); }
  void end(pid_t pid, int signal) {
    ::kill(pid, signal);
    ::waitpid(pid, nullptr, 0);
  }
  std::map<std::uint32_t, pid_t> processes_;
};

TEST_F(ExternalWorkers, AreAcceptedWhenTheyComeBySelf) {
  MiniManager::Options options;
  options.external = true;
  start(std::move(options));
  spawn(0);
  spawn(3);
  ASSERT_TRUE(manager_->wait_serving(2));
  EXPECT_TRUE(answers());
}

TEST_F(ExternalWorkers, AQueueWhoseWorkerStaysAwayIsReadByAnother) {
  MiniManager::Options options;
  options.external = true;
  start(std::move(options));
  spawn(0);
  spawn(1);
  ASSERT_TRUE(manager_->wait_serving(2));
  ::kill(processes_[1], SIGSTOP);
  Load load(server_, 64);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // about half of them wait in slot 1
  end(processes_[1], SIGKILL);
  processes_.erase(1);
  load.wait_for(20000);
  load.stop();
  EXPECT_EQ(load.lost(), 0U);
}

TEST_F(ExternalWorkers, ASlotTakenByALivingProcessIsRefusedToAnother) {
  MiniManager::Options options;
  options.external = true;
  start(std::move(options));
  spawn(0);
  ASSERT_TRUE(manager_->wait_serving(1));
  const pid_t first = processes_[0];
  spawn(0);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(manager_->pid_of(0), first);
  EXPECT_TRUE(answers());
  end(processes_[0], SIGTERM);
  processes_[0] = first;
}

}  // namespace
}  // namespace pando
