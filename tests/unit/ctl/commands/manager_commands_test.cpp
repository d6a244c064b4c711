#include "ctl/commands/manager_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "ipc/control_json.h"
#include "ipc/packet_socket.h"

namespace pando::ctl {
namespace manager_commands_test {

using ipc::ControlRequest;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using namespace std::chrono_literals;

constexpr auto kTimeout = 30s;

using Answer = std::function<Result<json>(const ControlRequest&)>;
using Command = std::function<int(Session&)>;

/// The next request, with the descriptor that came with it; nullopt: the client has gone.
std::optional<ControlRequest> receive_request(const Fd& fd) {
  ipc::PacketAssembler assembler(ipc::kMaxRequestBytes);
  ipc::Packet packet;
  while (true) {
    pollfd entry{fd.get(), POLLIN, 0};
    if (::poll(&entry, 1, 30'000) != 1) return std::nullopt;
    const auto received = ipc::receive_packet(fd.get(), packet);
    if (!received) return std::nullopt;
    if (!*received) continue;
    const std::string text(packet.data.begin(), packet.data.end());
    const auto message = assembler.feed(text);
    if (!message) return std::nullopt;
    if (!*message) continue;
    auto request = ipc::request_from_json(**message);
    if (!request) return std::nullopt;
    if (!packet.descriptors.empty())
      request->descriptor = std::make_shared<const Fd>(std::move(packet.descriptors.front()));
    return *request;
  }
}

/// Answers requests until the client goes away or asks for a stop; returns what was asked.
std::vector<ControlRequest> serve(const Fd& fd, const Answer& answer) {
  std::vector<ControlRequest> requests;
  while (true) {
    const auto request = receive_request(fd);
    if (!request) return requests;
    requests.push_back(*request);
    requests.back().descriptor = nullptr;  // no two are equal
    auto result = answer(*request);
    const json reply =
        result ? ipc::ok_reply(std::move(*result)) : ipc::error_reply(result.error());
    if (!ipc::send_json(fd.get(), reply, kTimeout)) return requests;
    if (request->verb == ipc::verb::kStop) return requests;
  }
}

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
  std::vector<ControlRequest> requests;
};

/// Runs a command against a manager that answers by `answer`, in a thread.
Outcome run(const Answer& answer, const Command& command, bool as_json = false) {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) std::abort();
  Outcome outcome;
  std::thread manager([&outcome, &answer, server = Fd{fds[1]}]() mutable {
    outcome.requests = serve(server, answer);
    server.reset();
  });
  std::ostringstream out;
  std::ostringstream err;
  {
    Session session(Fd{fds[0]}, {out, err, as_json}, kTimeout);
    outcome.code = command(session);
  }
  manager.join();
  outcome.out = out.str();
  outcome.err = err.str();
  return outcome;
}

Answer always(json result) {
  return [result = std::move(result)](const ControlRequest&) -> Result<json> { return result; };
}

Answer refuses(Errc code, std::string text) {
  return [=](const ControlRequest&) -> Result<json> {
    return tl::unexpected<Error>(Error{code, text});
  };
}

TEST(StatusCommand, PrintsFactsForPeople) {
  const ipc::StatusResult status{.version = "0.1.0",
                                 .pid = 42,
                                 .started = 1785844800,
                                 .configuration = "/etc/pando/pando.yaml",
                                 .worker_mode = "managed",
                                 .workers_wanted = 4,
                                 .workers_running = 3,
                                 .zones = 7,
                                 .zones_loaded = 6,
                                 .store = {{"live", 1536}},
                                 .counters = {{"updates", 5}}};
  const Outcome outcome =
      run(always(json(status)), [](Session& session) { return session.status(); });
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_EQ(outcome.requests, std::vector{ControlRequest{.verb = "status"}});
  EXPECT_THAT(outcome.out, HasSubstr("2026-08-04T12:00:00Z"));
  EXPECT_THAT(outcome.out, HasSubstr("3 of 4 running (managed)"));
  EXPECT_THAT(outcome.out, HasSubstr("6 of 7 loaded"));
  EXPECT_THAT(outcome.out, HasSubstr("1.50 KiB"));
  EXPECT_THAT(outcome.out, HasSubstr("5 received"));
  EXPECT_EQ(outcome.err, "");
}

TEST(ReadyCommand, HasACodeOfItsOwnForAServerWithoutZones) {
  ipc::StatusResult status{.zone_lists = "read", .workers_running = 1};
  const auto code = [&status](bool all_zones) {
    return run(always(json(status)), [&](Session& session) { return session.ready(all_zones, {}); })
        .code;
  };
  EXPECT_EQ(code(false), kDone);
  EXPECT_EQ(code(true), kNoZone);
  status.workers_running = 0;
  EXPECT_EQ(code(true), kFailed) << "the workers are the greater trouble";
}

TEST(StatusCommand, SaysWhenTheZoneListsAreNotRead) {
  const auto text = [](const ipc::StatusResult& status) {
    return run(always(json(status)), [](Session& session) { return session.status(); }).out;
  };
  EXPECT_THAT(text({.zone_lists = "read"}), Not(HasSubstr("zone lists")));
  EXPECT_THAT(text({.zone_lists = "reading"}), HasSubstr("being read"));
  EXPECT_THAT(text({.zone_lists = "failed", .problem = "/z.list:7: what"}),
              HasSubstr("not read: /z.list:7: what"));
}

TEST(StatusCommand, SaysWhereAnImageIsThatWasRefused) {
  const auto text = [](const ipc::StatusResult& status) {
    return run(always(json(status)), [](Session& session) { return session.status(); }).out;
  };
  EXPECT_THAT(text({}), Not(HasSubstr("image not used")));
  EXPECT_THAT(text({.image_not_used = "/z.image.quarantined: no room"}),
              HasSubstr("/z.image.quarantined: no room"));
  EXPECT_THAT(text({}), Not(HasSubstr("image quarantined")));
  EXPECT_THAT(text({.image_quarantined = "/z.image.quarantined: by an earlier start"}),
              AllOf(HasSubstr("/z.image.quarantined: by an earlier start (remove that file"),
                    Not(HasSubstr("image not used"))));
}

TEST(StatusCommand, PrintsTheResultAsItIsForPrograms) {
  const json result{{"pid", 42}, {"something-new", {1, 2}}};
  const Outcome outcome =
      run(always(result), [](Session& session) { return session.status(); }, true);
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_EQ(json::parse(outcome.out), result);
}

TEST(AnyCommand, ShowsTheManagersErrorAndFails) {
  for (const Errc code : {Errc::kNotFound, Errc::kIo}) {
    const Outcome outcome = run(refuses(code, "no such luck"),
                                [](Session& session) { return session.zone_status("a.example"); });
    EXPECT_EQ(outcome.code, kFailed);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "pandoctl: no such luck\n");
  }
}

TEST(AnyCommand, SaysWhenTheManagerGoesAway) {
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
  Fd{fds[1]}.reset();
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(Session(Fd{fds[0]}, {out, err}, kTimeout).status(), kUnreachable);
  EXPECT_NE(err.str(), "");
}

TEST(AnyCommand, FailsWhenItsRequestIsTooLarge) {
  const Outcome outcome = run(always(json::object()), [](Session& session) {
    ControlRequest request{.verb = std::string(ipc::verb::kZoneSet)};
    request.rdata = std::string(ipc::kMaxRequestBytes, 'x');
    return session.order(request);
  });
  EXPECT_EQ(outcome.code, kFailed) << "a manager is there";
  EXPECT_THAT(outcome.err, HasSubstr("pandoctl: the request is larger than 1 MiB"));
  EXPECT_TRUE(outcome.requests.empty());
}

TEST(AnyCommand, FailsWhenTheManagerIsThereButNotDoneInTime) {
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
  const Fd manager{fds[1]};
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(Session(Fd{fds[0]}, {out, err}, 20ms).reload(), kFailed);
  EXPECT_THAT(err.str(), HasSubstr("no answer in 0.02 s"));
  EXPECT_THAT(err.str(), HasSubstr("still under way"));
  EXPECT_TRUE(ipc::receive_json(manager.get(), ipc::kMaxRequestBytes, kTimeout))
      << "it has the request";
}

TEST(AnyCommand, RefusesAResultOfTheWrongShape) {
  const Outcome outcome =
      run(always(json::array()), [](Session& session) { return session.worker_list(); });
  EXPECT_EQ(outcome.code, kFailed);
}

ipc::ZoneRow row(std::size_t i, std::string state = "ok") {
  return {.name = fmt::format("z{:06}.example.", i),
          .kind = "primary",
          .state = std::move(state),
          .serial = static_cast<std::uint32_t>(i),
          .records = 3};
}

/// A manager with that many zones, which gives them page by page.
Answer many_zones(std::size_t count) {
  return [count](const ControlRequest& request) -> Result<json> {
    ipc::ZoneListResult page;
    std::size_t i = request.after.empty() ? 0 : std::stoul(request.after.substr(1, 6)) + 1;
    for (; i < count && page.zones.size() < request.limit; ++i) page.zones.push_back(row(i));
    if (i < count) page.next = page.zones.back().name;
    return json(page);
  };
}

TEST(ZoneListCommand, AsksPageByPage) {
  const Outcome outcome =
      run(many_zones(2500), [](Session& session) { return session.zone_list(); });
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_EQ(outcome.requests.size(), 3U);
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 2501) << "with a header";
  EXPECT_THAT(outcome.out, HasSubstr("    SERIAL     RECORDS  KIND       STATE       ZONE\n"
                                     "         0           3  primary    ok          z000000."));
  EXPECT_THAT(outcome.out, HasSubstr("z002499.example.\n"));
}

TEST(ZoneListCommand, PrintsOneJsonArrayForPrograms) {
  for (const std::size_t count : {0U, 1U, 1001U}) {
    const Outcome outcome =
        run(many_zones(count), [](Session& session) { return session.zone_list(); }, true);
    const json zones = json::parse(outcome.out);
    ASSERT_TRUE(zones.is_array());
    ASSERT_EQ(zones.size(), count);
    if (count != 0) {
      EXPECT_EQ(zones.back()["name"], row(count - 1).name);
    }
  }
}

TEST(ZoneListCommand, EndsWhenTheManagerSendsTheSamePageAgain) {
  const ipc::ZoneListResult page{{row(1)}, row(1).name};
  const Outcome outcome =
      run(always(json(page)), [](Session& session) { return session.zone_list(); });
  EXPECT_EQ(outcome.requests.size(), 2U);
}

TEST(ZoneStatusCommand, PrintsOneZone) {
  ipc::ZoneRow zone = row(7);
  zone.kind = "secondary";
  zone.primaries = {"192.0.2.1@53", "2001:db8::1@53"};
  zone.problem = "timeout";
  zone.added = true;
  const Outcome outcome = run(
      always(json(zone)), [](Session& session) { return session.zone_status("Z000007.example"); });
  ASSERT_EQ(outcome.requests.size(), 1U);
  EXPECT_EQ(outcome.requests[0].name, "Z000007.example.") << "absolute";
  EXPECT_THAT(outcome.out, HasSubstr("192.0.2.1@53, 2001:db8::1@53"));
  EXPECT_THAT(outcome.out, HasSubstr("timeout"));
  EXPECT_THAT(outcome.out, HasSubstr("never")) << "not checked yet";
  EXPECT_THAT(outcome.out, HasSubstr("added by"));
}

TEST(ZoneStatusCommand, SucceedsIfTheZoneIsServedAndNothingFailed) {
  const auto code = [](const std::string& state, const std::string& problem, bool as_json) {
    ipc::ZoneRow zone = row(7, state);
    zone.problem = problem;
    return run(
               always(json(zone)), [](Session& session) { return session.zone_status("z.test"); },
               as_json)
        .code;
  };
  for (const bool as_json : {false, true}) {
    EXPECT_EQ(code("ok", "", as_json), kDone);
    EXPECT_EQ(code("ok", "the file was changed", as_json), kFailed);
    for (const char* state : {"loading", "not-loaded", "expired", "removed"})
      EXPECT_EQ(code(state, "", as_json), kFailed) << state;
  }
}

TEST(ZoneStatusCommand, TellsTheCatalogOfAZoneAndTheRoleOfACatalog) {
  const auto shown = [](const ipc::ZoneRow& zone) {
    return run(always(json(zone)), [](Session& session) { return session.zone_status("z.test"); })
        .out;
  };
  ipc::ZoneRow zone = row(7);
  EXPECT_THAT(shown(zone), Not(HasSubstr("member")));
  zone.catalog = "catalog.test.";
  EXPECT_THAT(shown(zone), HasSubstr("member of"));
  EXPECT_THAT(shown(zone), HasSubstr("catalog.test.\n"));
  zone.catalog_role = "producer";
  zone.catalog_members = 1;
  EXPECT_THAT(shown(zone), HasSubstr("producer, 1 member\n"));
}

TEST(ZoneStatusCommand, RefusesABadNameByItself) {
  const Outcome outcome =
      run(always({}), [](Session& session) { return session.zone_status("a..b"); });
  EXPECT_EQ(outcome.code, kFailed);
  EXPECT_TRUE(outcome.requests.empty());
}

TEST(ZoneStatusCommand, WithoutANameShowsTheZonesWithProblems) {
  const ipc::ZoneListResult page{{row(1), row(2, "expired"), row(3)}, ""};
  const Outcome outcome =
      run(always(json(page)), [](Session& session) { return session.zone_problems(); });
  EXPECT_EQ(outcome.code, kFailed) << "for scripts";
  EXPECT_THAT(outcome.out, HasSubstr("expired     z000002.example."));
  EXPECT_THAT(outcome.out, Not(HasSubstr("z000001.example.")));
  EXPECT_THAT(outcome.out, HasSubstr("2 of 3 zones ok, 1 with problems\n"));
}

TEST(ZoneStatusCommand, WithoutANameShowsProblemsOfZonesThatAreServed) {
  ipc::ZoneRow broken = row(2);
  broken.problem = "a.zone:3: no such type";
  const ipc::ZoneListResult page{{row(1), broken, row(3, "loading"), row(4, "not-loaded")}, ""};
  const auto command = [](Session& session) { return session.zone_problems(); };
  const Outcome outcome = run(always(json(page)), command);
  EXPECT_EQ(outcome.code, kFailed);
  EXPECT_THAT(outcome.out, HasSubstr("ok          z000002.example.  a.zone:3: no such type\n"));
  EXPECT_THAT(outcome.out, HasSubstr("1 of 4 zones ok, 2 with problems, 1 loading\n"));
  const json rows = json::parse(run(always(json(page)), command, true).out);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0]["problem"], "a.zone:3: no such type");
}

TEST(ZoneStatusCommand, WithoutANameIsQuietWhenAllIsWell) {
  const ipc::ZoneListResult page{{row(1)}, ""};
  const Outcome outcome =
      run(always(json(page)), [](Session& session) { return session.zone_problems(); });
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_EQ(outcome.out, "1 of 1 zone ok\n");
}

TEST(WorkerCommands, SendTheirCountAndPrintTheWorkers) {
  const ipc::WorkerListResult list{"managed",
                                   {{0,
                                     100,
                                     "serving",
                                     1785844800,
                                     1,
                                     2,
                                     {{"queries_udp", 70}, {"queries_tcp", 7}, {"queries_do", 5}},
                                     {},
                                     {},
                                     {},
                                     3 << 20},
                                    {1, 0, "dead"}}};
  const std::pair<const char*, Command> cases[] = {
      {"worker-list", [](Session& session) { return session.worker_list(); }},
      {"worker-add",
       [](Session& session) { return session.change_workers(ipc::verb::kWorkerAdd, 3); }},
      {"worker-remove",
       [](Session& session) { return session.change_workers(ipc::verb::kWorkerRemove, 3); }},
      {"worker-restart", [](Session& session) { return session.worker_restart(); }},
  };
  for (const auto& [verb, command] : cases) {
    const Outcome outcome = run(always(json(list)), command);
    EXPECT_EQ(outcome.code, kDone);
    ASSERT_EQ(outcome.requests.size(), 1U);
    EXPECT_EQ(outcome.requests[0].verb, verb);
    const bool counts = verb == std::string("worker-add") || verb == std::string("worker-remove");
    EXPECT_EQ(outcome.requests[0].count, counts ? 3U : 1U);
    EXPECT_EQ(
        outcome.out,
        "SLOT  PID  STATE    STARTED               RESTARTS  TRANSFERS  PAGE TABLES  QUERIES\n"
        "   0  100  serving  2026-08-04T12:00:00Z         1          2     3.00 MiB       77\n"
        "   1    -  dead     -                            0          0          0 B        0\n");
  }
}

TEST(TopCommand, LooksOnceMoreThanItPrints) {
  std::uint64_t queries = 0;
  const Outcome outcome = run(
      [&](const ControlRequest& request) -> Result<json> {
        if (request.verb == ipc::verb::kStatus) return json(ipc::StatusResult{});
        if (request.verb == ipc::verb::kZoneQueries)
          return json(ipc::ZoneQueriesResult{{{3, "a.test.", queries}}});
        ipc::WorkerListResult list;
        list.workers.push_back({.slot = 3, .pid = 7, .state = "serving"});
        list.workers[0].counters["queries_udp"] = queries += 100;
        return json(list);
      },
      [](Session& session) { return session.top(1ms, 2, false); }, true);
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_EQ(outcome.requests.size(), 9U);
  std::istringstream lines(outcome.out);
  int printed = 0;
  for (std::string line; std::getline(lines, line); ++printed) {
    EXPECT_GT(json::parse(line)["workers"][0]["queries"].get<double>(), 0);
    EXPECT_EQ(json::parse(line)["zones"][0]["zone"], "a.test.");
  }
  EXPECT_EQ(printed, 2);
}

TEST(TopCommand, WorksWithAManagerThatDoesNotKnowZones) {
  const Outcome outcome = run(
      [](const ControlRequest& request) -> Result<json> {
        if (request.verb == ipc::verb::kStatus) return json(ipc::StatusResult{});
        if (request.verb == ipc::verb::kWorkerList) return json(ipc::WorkerListResult{});
        return fail(Errc::kUnsupported, "unknown verb");
      },
      [](Session& session) { return session.top(1ms, 1, false); });
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_EQ(outcome.err, "");
}

TEST(ReloadCommand, SaysWhatChangedAndWhatWaits) {
  const ipc::ReloadResult result{1, 2, 0, 3, {"store.path"}, {"careful"}};
  const Outcome outcome =
      run(always(json(result)), [](Session& session) { return session.reload(); });
  EXPECT_EQ(outcome.out,
            "reloaded: 1 zone added, 2 removed, 3 changed\n"
            "store.path was changed and waits for a restart of the manager\n"
            "warning: careful\n");
  EXPECT_EQ(outcome.code, kDone);
}

TEST(ReloadCommand, FailsWhenAFileCouldNotBeLoaded) {
  const ipc::ReloadResult result{0, 0, 0, 1, {}, {}, 2, {"a.: a.zone:3: no such type"}};
  const Outcome outcome =
      run(always(json(result)), [](Session& session) { return session.reload(); });
  EXPECT_EQ(outcome.code, kFailed);
  EXPECT_EQ(outcome.out,
            "reloaded: 0 zones added, 0 removed, 1 changed\n"
            "error: a.: a.zone:3: no such type\n"
            "error: 2 zones in all could not be loaded\n");
}

TEST(ReloadCommand, CountsZonesThatAreStillJudged) {
  ipc::ReloadResult result;
  result.zones_being_judged = 2;
  const Outcome outcome =
      run(always(json(result)), [](Session& session) { return session.reload(); });
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_EQ(outcome.out,
            "reloaded: 0 zones added, 0 removed, 0 changed\n"
            "2 zones still judged by programs: see pandoctl zone status NAME\n");
}

TEST(ZoneExportCommand, SaysWhereTheZoneIs) {
  const auto command = [](Session& session) { return session.zone_export("A", ""); };
  for (const bool written : {true, false}) {
    const ipc::ExportResult result{"a.", 7, 1, "/a.zone", written};
    const Outcome outcome = run(always(json(result)), command);
    EXPECT_EQ(outcome.code, kDone);
    EXPECT_EQ(outcome.requests, std::vector{(ControlRequest{.verb = "zone-export", .name = "A."})});
    EXPECT_EQ(outcome.out, fmt::format("a.: serial 7 with 1 record {} /a.zone\n",
                                       written ? "written to" : "was in"));
  }
}

/// A folder for files that the manager writes by descriptor.
class GivenFile : public ::testing::Test {
 protected:
  GivenFile() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
  }
  ~GivenFile() override { std::filesystem::remove_all(folder_); }
  /// A manager that writes `text` and then gives the result, or the error.
  static Answer writes(std::string text, Result<json> result) {
    return [text, result](const ControlRequest& request) -> Result<json> {
      if (request.descriptor) {
        EXPECT_EQ(::write(request.descriptor->get(), text.data(), text.size()), std::ssize(text));
      }
      return result;
    };
  }
  static Command exports_to(const std::string& path) {
    return [path](Session& session) { return session.zone_export("a.test", path); };
  }
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  [[nodiscard]] std::string text_of(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      found.push_back(entry.path().filename().string());
    std::ranges::sort(found);
    return found;
  }
  std::filesystem::path folder_ =
      std::filesystem::canonical(std::filesystem::temp_directory_path()) /
      fmt::format("given-file-{}", ::getpid());
  std::string export_of_a_ = "$ORIGIN a.test.\n; zone a.test. at serial 6\n";
  json exported_ = ipc::ExportResult{"a.test.", 7, 1, "-", true};
};

TEST_F(GivenFile, IsTheCallersAndHasItsNameWhenItIsWhole) {
  const std::string path = (folder_ / "a.zone").string();
  const Outcome outcome = run(writes("text", exported_), exports_to(path));
  EXPECT_EQ(outcome.code, kDone) << outcome.err;
  EXPECT_EQ(outcome.requests,
            std::vector{(ControlRequest{.verb = "zone-export", .name = "a.test.", .to = path})});
  EXPECT_EQ(text_of("a.zone"), "text");
  EXPECT_THAT(names(), ElementsAre("a.zone"));
}

TEST_F(GivenFile, AnErrorLeavesTheOldFileAndNothingElse) {
  put("a.zone", export_of_a_);
  const Error full{Errc::kFull, "no space"};
  const Outcome outcome =
      run(writes("half", tl::unexpected<Error>(full)), exports_to((folder_ / "a.zone").string()));
  EXPECT_EQ(outcome.code, kFailed);
  EXPECT_THAT(outcome.err, HasSubstr("no space"));
  EXPECT_EQ(text_of("a.zone"), export_of_a_);
  EXPECT_THAT(names(), ElementsAre("a.zone"));
}

TEST_F(GivenFile, AManagerThatWroteElsewhereIsNotBelieved) {
  const Outcome outcome = run(writes("", exported_), exports_to((folder_ / "a.zone").string()));
  EXPECT_EQ(outcome.code, kFailed);
  EXPECT_THAT(outcome.err, HasSubstr("did not write"));
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(GivenFile, ReplacesNothingButItsOwnKind) {
  put("notes", "dear diary\n");
  std::filesystem::create_symlink("/nowhere", folder_ / "link");
  for (const char* name : {"notes", "link"}) {
    const Outcome outcome = run(writes("text", exported_), exports_to((folder_ / name).string()));
    EXPECT_EQ(outcome.code, kFailed) << name;
    EXPECT_THAT(outcome.requests, IsEmpty()) << name;
  }
  const Outcome dump = run(writes("text", exported_), [this](Session& session) {
    return session.store_dump((folder_ / "notes").string());
  });
  EXPECT_EQ(dump.code, kFailed);
  EXPECT_THAT(dump.err, HasSubstr("something else than a dump"));
  EXPECT_EQ(text_of("notes"), "dear diary\n");
  put("a.zone", export_of_a_);
  EXPECT_EQ(run(writes("new", exported_), exports_to((folder_ / "a.zone").string())).code, kDone);
  EXPECT_EQ(text_of("a.zone"), "new");
}

TEST_F(GivenFile, RootFollowsNoLinkOfOthersAmongTheFolders) {
  std::filesystem::create_directory(folder_ / "real");
  const std::string link = (folder_ / "link").string();
  std::filesystem::create_directory_symlink("real", link);
  const auto write = [&] { return run(writes("text", exported_), exports_to(link + "/a.zone")); };
  EXPECT_EQ(write().code, kDone) << "a link of one's own";
  if (::geteuid() != 0) return;
  constexpr uid_t kAnother = 65534;
  ASSERT_EQ(::lchown(link.c_str(), kAnother, kAnother), 0);
  EXPECT_EQ(write().code, kFailed) << "a link of another user";
}

TEST_F(GivenFile, OfADumpIsForItsOwnerAlone) {
  const json written = ipc::DumpResult{1, 2, 3, 4, 5};
  const Outcome outcome = run(writes("dump", written), [this](Session& session) {
    return session.store_dump((folder_ / "d").string());
  });
  EXPECT_EQ(outcome.code, kDone) << outcome.err;
  EXPECT_EQ(std::filesystem::status(folder_ / "d").permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(GivenFile, OfACopyIsItsFolder) {
  bool is_folder = false;
  const Answer answer = [&](const ControlRequest& request) -> Result<json> {
    struct stat seen{};
    is_folder = request.descriptor && ::fstat(request.descriptor->get(), &seen) == 0 &&
                S_ISDIR(seen.st_mode);
    return json::object();
  };
  const Outcome outcome = run(answer, [this](Session& session) {
    return session.store_copy((folder_ / "z.image").string());
  });
  EXPECT_EQ(outcome.code, kDone) << outcome.err;
  EXPECT_TRUE(is_folder);
}

TEST(ZoneRollbackCommand, TellsSerialsFromLabels) {
  const auto asked = [](const std::string& target) {
    const Outcome outcome = run(always({{"serial", 9}}), [&](Session& session) {
      return session.zone_rollback("example.com", target);
    });
    EXPECT_EQ(outcome.code, kDone);
    EXPECT_EQ(outcome.out, "example.com.: serial 9\n");
    return outcome.requests.at(0);
  };
  EXPECT_EQ(asked("4294967295").serial, 4294967295U);
  EXPECT_EQ(asked("4294967295").label, "");
  for (const std::string label : {"before", "2024-01-01", "7a", "4294967296"}) {
    EXPECT_EQ(asked(label).label, label);
    EXPECT_EQ(asked(label).serial, 0U);
  }
}

TEST(ZoneSnapshotCommand, SaysWhetherARestartOfTheHostLosesIt) {
  const auto said = [](bool in_image) {
    const ipc::SnapshotResult result{"example.com.", "before", 7, in_image};
    return run(always(json(result)),
               [](Session& session) { return session.zone_snapshot("example.com", "before"); });
  };
  const Outcome outcome = said(true);
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_EQ(outcome.out, "example.com.: serial 7 is 'before'\n");
  EXPECT_EQ(outcome.requests.at(0).verb, "zone-snapshot");
  EXPECT_EQ(outcome.requests.at(0).name, "example.com.");
  EXPECT_EQ(outcome.requests.at(0).label, "before");
  EXPECT_THAT(said(false).out, HasSubstr("a restart of the host loses the snapshot"));
}

TEST(ZoneSnapshotsCommand, ListsThemPageByPage) {
  const auto page = [](const ControlRequest& request) -> Result<json> {
    if (request.after.empty())
      return json(ipc::SnapshotListResult{
          {{"a.test.", "good", 7, 1785844800, 12, ""}, {"a.test.", "old", 3, 1, 9, "no room"}},
          "a.test."});
    return json(ipc::SnapshotListResult{{{"b.test.", "one", 1, 1, 1, ""}}, ""});
  };
  const auto list = [](Session& session) { return session.zone_snapshots(""); };
  const Outcome outcome = run(page, list);
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_THAT(outcome.out, HasSubstr("2026-08-04T12:00:00Z"));
  EXPECT_THAT(outcome.out, HasSubstr("lost: no room"));
  EXPECT_THAT(outcome.out, HasSubstr("b.test."));
  const auto all = json::parse(run(page, list, true).out);
  ASSERT_EQ(all.at("snapshots").size(), 3U);
  EXPECT_EQ(all.at("snapshots").at(1).at("lost"), "no room");
}

TEST(StoreStatsCommand, NamesSnapshots) {
  ipc::StoreAudit audit;
  audit.records = 2;
  audit.bytes = {{"rdata", 100}};
  audit.snapshots = {{"example.com.", "before", 4711}};
  const Outcome outcome =
      run(always(json(audit)), [](Session& session) { return session.store_stats(""); });
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_THAT(outcome.out, HasSubstr("4711"));
  EXPECT_THAT(outcome.out, HasSubstr("before"));
}

TEST(StopCommand, WaitsForTheManagersEnd) {
  const Outcome outcome =
      run(always(json::object()), [](Session& session) { return session.stop(); });
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_EQ(outcome.out, "stopped\n");
}

TEST(StopCommand, SaysWhenTheManagerDoesNotEnd) {
  int fds[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
  const Fd server(fds[1]);
  ASSERT_TRUE(ipc::send_json(server.get(), ipc::ok_reply(json::object()), kTimeout));
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(Session(Fd{fds[0]}, {out, err}, 50ms).stop(), kFailed);
  EXPECT_EQ(err.str(), "pandoctl: the manager is still there\n");
}

TEST(ZoneStatusCommand, TellsHowFarALoadIs) {
  const auto told = [](const std::string& phase, std::uint64_t done, std::uint64_t total) {
    ipc::ZoneRow zone = row(7);
    zone.load_phase = phase;
    zone.load_done = done;
    zone.load_total = total;
    return run(always(json(zone)),
               [](Session& session) { return session.zone_status("Z000007.example"); })
        .out;
  };
  EXPECT_THAT(told("", 0, 0), Not(HasSubstr("loading")));
  EXPECT_THAT(told("reading", 1 << 20, 4 << 20),
              HasSubstr("reading, 25% of " + bytes_text(4 << 20)));
  EXPECT_THAT(told("reading", 4 << 20, 0), HasSubstr("reading, " + bytes_text(4 << 20)));
  EXPECT_THAT(told("sorting", 3, 4), HasSubstr("sorting, 75% of 4\n"));
  EXPECT_THAT(told("putting", 0, 0), HasSubstr("putting\n"));
}

TEST(ZoneStatusCommand, TellsOfTheChangeThatIsUnderWay) {
  const auto told = [](const std::string& source) {
    ipc::ZoneRow zone = row(7);
    zone.change_from = source;
    zone.change_step = "computing";
    zone.change_since = 60;
    return run(always(json(zone)),
               [](Session& session) { return session.zone_status("Z000007.example"); })
        .out;
  };
  EXPECT_THAT(told(""), Not(HasSubstr("computing")));
  EXPECT_THAT(told("transfer"), HasSubstr("transfer, computing since 1970-01-01T00:01:00Z\n"));
}

TEST(ZoneStatusCommand, TellsOfTheProgramThatJudges) {
  const auto told = [](const std::string& program, std::uint64_t since, std::uint64_t until) {
    ipc::ZoneRow zone = row(7);
    zone.judged_by = program;
    zone.judged_since = since;
    zone.judged_until = until;
    return run(always(json(zone)),
               [](Session& session) { return session.zone_status("Z000007.example"); })
        .out;
  };
  EXPECT_THAT(told("", 0, 0), Not(HasSubstr("judged")));
  EXPECT_THAT(told("/judge", 0, 0), HasSubstr("/judge, not begun\n"));
  EXPECT_THAT(told("/judge", 60, 90),
              HasSubstr("/judge since 1970-01-01T00:01:00Z, at most until 1970-01-01T00:01:30Z\n"));
}

}  // namespace manager_commands_test
}  // namespace pando::ctl
