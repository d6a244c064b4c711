#include "http/page/zone_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "ipc/control.h"
#include "ipc/control_json.h"
#include "tests/unit/shm/support.h"
#include "tests/unit/worker/zone_store.h"

namespace pando::http {
namespace zone_rows_test {

using nlohmann::json;
using pando::testing::name;
using pando::testing::TestZone;
using pando::testing::ZoneStore;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::chrono::minutes kLong{10};
constexpr const char* kText = "@ 5 SOA ns x 7 1 1 1 1\n@ 5 NS ns\n";
constexpr const char* kHostile = "<img\\032src=x\\032onerror=\"alert(1)\">.test.";

/// Without a manager: all is from the store.
class ZoneRows : public ::testing::Test {
 protected:
  json read(std::string_view query, const AccessKey& client = {}) {
    const auto wanted = read_zone_query(query);
    EXPECT_TRUE(wanted) << (wanted ? "" : wanted.error().text);
    if (!wanted) return {};
    auto rows = zone_rows_json(collector_, *wanted, client);
    EXPECT_TRUE(rows) << (rows ? "" : rows.error().text);
    return rows ? *rows : json();
  }
  std::vector<std::string> names(std::string_view query, const AccessKey& client = {}) {
    std::vector<std::string> names;
    const json page = read(query, client);
    for (const json& row : page["zones"]) names.push_back(row["name"]);
    return names;
  }
  CollectorOptions options() {
    CollectorOptions options;
    options.store_path = store_.path();
    options.run_directory = "/nowhere";
    options.layout = zone::layout_fingerprint();
    return options;
  }
  ZoneStore store_{{TestZone{"a.test.", kText}, TestZone{"b.a.test.", kText},
                    TestZone{kHostile, kText}, TestZone{"none.test.", ""}}};
  Collector collector_{options()};
};

TEST_F(ZoneRows, AreThoseOfTheStore) {
  const json page = read("");
  ASSERT_EQ(page["zones"].size(), 4U);
  EXPECT_EQ(page["next"], "");
  EXPECT_EQ(page["looked"], 4);
  EXPECT_EQ(page["manager"], false);
  json a;
  for (const json& row : page["zones"])
    if (row["name"] == "a.test.") a = row;
  EXPECT_EQ(a, (json{{"name", "a.test."},
                     {"kind", "primary"},
                     {"state", "ok"},
                     {"serial", 7},
                     {"records", 2},
                     {"frozen", false},
                     {"problem", ""}}));
}

TEST_F(ZoneRows, AreSearchedByPartsOfNames) {
  EXPECT_THAT(names("search=A.te"), ElementsAre("a.test.", "b.a.test."));
  EXPECT_THAT(names("search=b*test."), ElementsAre("b.a.test."));
  EXPECT_THAT(names("search=nothing"), IsEmpty());
  EXPECT_THAT(names("search=onerror"), ElementsAre(to_text(name(kHostile))));
  EXPECT_THAT(names("after=a.test.&search=a.test"), ElementsAre("b.a.test."));
  EXPECT_FALSE(read_zone_query("search=" + std::string(1025, 'a')));
  EXPECT_FALSE(read_zone_query("after=a..b"));
}

TEST_F(ZoneRows, WithProblemsAreKnownWithoutAManager) {
  EXPECT_THAT(names("problems=1"), ElementsAre("none.test."));
  EXPECT_EQ(read("problems=1")["zones"][0]["state"], "not-loaded");
}

TEST_F(ZoneRows, AreThoseThatTheKeySees) {
  const auto key = [](std::initializer_list<const char*> zones) {
    AccessKey made;
    for (const char* zone : zones) made.zones.push_back(name(zone));
    return made;
  };
  EXPECT_THAT(names("", key({"a.test."})), ElementsAre("a.test."));
  EXPECT_THAT(names("", key({"*.a.test.", "none.test."})), ElementsAre("b.a.test.", "none.test."));
  EXPECT_THAT(names("problems=1", key({"a.test."})), IsEmpty());
  EXPECT_THAT(names("problems=1", key({"a.test.", "none.test."})), ElementsAre("none.test."));
  EXPECT_EQ(read("", key({"a.test."}))["looked"], 1) << "no other zone was looked at";
}

TEST_F(ZoneRows, HaveDetails) {
  const auto zone = zone_details_json(collector_, name("a.test."), {});
  ASSERT_TRUE(zone) << zone.error().text;
  EXPECT_EQ((*zone)["manager"], false);
  EXPECT_EQ((*zone)["zone"]["serial"], 7);
  EXPECT_EQ((*zone)["changesets"], json::array());
  EXPECT_EQ((*zone)["changesets_known"], true);
  EXPECT_EQ((*zone)["snapshots"], json::array());
  EXPECT_EQ(zone_details_json(collector_, name("absent.test."), {}).error().code, Errc::kNotFound);
}

/// A manager that lists zones by the thousand.
class ListingManager {
 public:
  ListingManager(std::size_t zones, std::size_t with_problem) : zones_(zones), bad_(with_problem) {
    const std::string path = folder_.path() + "/" + std::string(ipc::kControlSocketName);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(listening_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listening_.get(), 4), 0);
    thread_ = std::thread([this] { run(); });
  }
  ~ListingManager() {
    ::shutdown(listening_.get(), SHUT_RDWR);
    thread_.join();
  }
  [[nodiscard]] const std::string& folder() const { return folder_.path(); }

 private:
  void run() {
    while (true) {
      const Fd client(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client) return;
      const auto message = ipc::receive_json(client.get(), ipc::kMaxRequestBytes, kLong);
      const auto request = ipc::request_from_json(message.value()).value();
      EXPECT_TRUE(ipc::send_json(client.get(), ipc::ok_reply(page(request.after)), kLong));
    }
  }
  json page(const std::string& after) const {
    ipc::ZoneListResult list;
    std::size_t i = after.empty() ? 0 : std::stoul(after.substr(1)) + 1;
    for (; i < zones_ && list.zones.size() < ipc::kZonePageRows; ++i)
      list.zones.push_back({.name = fmt::format("z{:05}.", i),
                            .state = "ok",
                            .problem = i == bad_ ? "it is behind" : ""});
    if (i < zones_) list.next = list.zones.back().name;
    return list;
  }

  shm::test::Folder folder_;
  std::size_t zones_;
  std::size_t bad_;
  Fd listening_{::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
  std::thread thread_;
};

CollectorOptions options_for(const ListingManager& manager, std::chrono::milliseconds list_time) {
  CollectorOptions options;
  options.run_directory = manager.folder();
  options.manager_timeout = kLong;
  options.list_time = list_time;
  return options;
}

TEST(Problems, AreFoundByOneRequestBehindMoreZonesThanTheManagerListsAtOnce) {
  const ListingManager manager(3500, 3200);
  Collector collector(options_for(manager, kLong));
  const auto page = zone_rows_json(collector, read_zone_query("problems=1").value(), {});
  ASSERT_TRUE(page) << page.error().text;
  ASSERT_EQ((*page)["zones"].size(), 1U);
  EXPECT_EQ((*page)["zones"][0]["name"], "z03200.");
  EXPECT_EQ((*page)["looked"], 3500);
  EXPECT_EQ((*page)["next"], "");
}

TEST(Problems, AreLookedForFurtherByTheNextRequestIfTheManagerIsBusy) {
  const ListingManager manager(3500, 3200);
  Collector collector(options_for(manager, std::chrono::milliseconds(0)));
  std::size_t requests = 0;
  std::size_t found = 0;
  std::string next;
  do {
    const auto query = read_zone_query("problems=1" + (next.empty() ? "" : "&after=" + next));
    const auto page = zone_rows_json(collector, query.value(), {});
    ASSERT_TRUE(page) << page.error().text;
    found += (*page)["zones"].size();
    next = (*page)["next"];
    ASSERT_LE(++requests, 4U);
  } while (!next.empty());
  EXPECT_EQ(requests, 4U);
  EXPECT_EQ(found, 1U);
}

TEST(Rows, OfExpiredZonesTellIt) {
  ZoneFacts facts;
  facts.name = "a.";
  facts.loaded = facts.secondary = true;
  facts.expires_at = 100;
  EXPECT_EQ(row_of(facts, 99).state, "ok");
  EXPECT_EQ(row_of(facts, 100).state, "expired");
  EXPECT_EQ(row_of(facts, 100).kind, "secondary");
}

}  // namespace zone_rows_test
}  // namespace pando::http
