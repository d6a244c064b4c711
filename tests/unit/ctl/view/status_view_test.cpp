#include "ctl/view/status_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace pando::ctl {
namespace status_view_test {

using ::testing::HasSubstr;
using ::testing::Not;

ipc::StatusResult healthy() {
  ipc::StatusResult status;
  status.zone_lists = "read";
  status.worker_mode = "managed";
  status.worker_isolation = "user";
  status.workers_wanted = status.workers_running = 2;
  status.addresses = {{"192.0.2.1@53", ""}, {"192.0.2.2@53", ""}};
  status.zones = status.zones_loaded = 7;
  status.store = {{"live", 1536}, {"memory", 4096}, {"effective_limit", 1 << 20}};
  status.journal = {{"position", 12}, {"bytes", 2048}, {"in_memory", 0}};
  status.counters = {{"updates", 5}, {"updates_accepted", 4}, {"upkeep_walks", 3}};
  return status;
}

std::string text(const ipc::StatusResult& status, bool all = false) {
  std::ostringstream out;
  print_status(status, all, out);
  return out.str();
}

TEST(StatusView, FitsAScreen) {
  const std::string shown = text(healthy());
  EXPECT_LE(std::count(shown.begin(), shown.end(), '\n'), 20);
  EXPECT_THAT(shown, HasSubstr("192.0.2.1@53, 192.0.2.2@53\n"));
  EXPECT_THAT(shown, HasSubstr("5 received, 4 accepted\n"));
  EXPECT_THAT(shown, HasSubstr("1.50 KiB in use"));
  EXPECT_THAT(shown, Not(HasSubstr("upkeep_walks")));
  EXPECT_THAT(shown, Not(HasSubstr("WARNING")));
}

TEST(StatusView, AllHasEachCounter) { EXPECT_THAT(text(healthy(), true), HasSubstr("upkeep_walks")); }

TEST(StatusView, ProblemsAreNamed) {
  ipc::StatusResult status = healthy();
  status.addresses["192.0.2.2@53"] = "bind 192.0.2.2@53: Address already in use";
  status.problem = "the journal cannot be written";
  status.worker_isolation = "none";
  status.journal["in_memory"] = 1;
  const std::string shown = text(status);
  EXPECT_THAT(shown, HasSubstr("192.0.2.1@53\n"));
  EXPECT_THAT(shown, HasSubstr("bind 192.0.2.2@53: Address already in use"));
  EXPECT_THAT(shown, HasSubstr("the journal cannot be written"));
  EXPECT_THAT(shown, HasSubstr("workers run as the manager's user"));
  EXPECT_THAT(shown, HasSubstr("the journal is in memory"));
}

TEST(StatusView, KeysThatWaitForARestartAreNamed) {
  ipc::StatusResult status = healthy();
  EXPECT_THAT(text(status), Not(HasSubstr("restart")));
  status.restart_needed = {"store.path", "server.run-directory"};
  EXPECT_THAT(text(status), HasSubstr("store.path, server.run-directory\n"));
}

TEST(StatusView, DamageIsNamedAsFarAsTheScreenHasRoom) {
  ipc::StatusResult status = healthy();
  EXPECT_THAT(text(status), Not(HasSubstr("damage")));
  status.damage_found = {{0, "zones.image: wrong checksum"}, {0, "two"}, {0, "three"}, {0, "four"}};
  EXPECT_THAT(text(status), HasSubstr("zones.image: wrong checksum\n"));
  EXPECT_THAT(text(status), HasSubstr("1 more (--all)\n"));
  EXPECT_THAT(text(status), Not(HasSubstr("four")));
  EXPECT_THAT(text(status, true), HasSubstr("four\n"));
}

TEST(StatusView, ProblemsAreRedOnATerminalAlone) {
  ipc::StatusResult status = healthy();
  std::ostringstream calm;
  print_status(status, false, calm, true);
  EXPECT_EQ(calm.str(), text(status));
  status.workers_running = 1;
  EXPECT_THAT(text(status), Not(HasSubstr("\x1b")));
  std::ostringstream red;
  print_status(status, false, red, true);
  EXPECT_THAT(red.str(), HasSubstr("\x1b[31mworkers:"));
  EXPECT_THAT(red.str(), HasSubstr("1 of 2 running (managed)\x1b[0m\n"));
}

TEST(StatusView, CatalogsHaveTheirRoleAndProblem) {
  ipc::StatusResult status = healthy();
  EXPECT_THAT(text(status), Not(HasSubstr("catalog")));
  status.catalogs = {{"c.test.", "producer", ""}, {"d.test.", "consumer", "5 members left at once"}};
  EXPECT_THAT(text(status), HasSubstr("c.test. (producer)\n"));
  EXPECT_THAT(text(status), HasSubstr("d.test. (consumer): 5 members left at once\n"));
}

TEST(Ready, NeedsAWorkerAndAnAddress) {
  ipc::StatusResult status = healthy();
  EXPECT_EQ(why_not_ready(status, true), "");
  status.addresses["192.0.2.2@53"] = "in use";
  EXPECT_EQ(why_not_ready(status, true), "");
  status.addresses["192.0.2.1@53"] = "gone";
  EXPECT_EQ(why_not_ready(status, false), "no address is open: gone");
  status.workers_running = 0;
  EXPECT_EQ(why_not_ready(status, false), "no worker serves");
}

TEST(Ready, MayNeedAllZones) {
  ipc::StatusResult status = healthy();
  status.zones_loaded = 6;
  EXPECT_EQ(why_not_ready(status, false), "");
  EXPECT_EQ(why_not_ready(status, true), "6 of 7 zones loaded");
  status.zone_lists = "failed";
  status.problem = "/etc/pando/zones:3: what";
  EXPECT_EQ(why_not_ready(status, false), "");
  EXPECT_EQ(why_not_ready(status, true), "the zone lists are not read: /etc/pando/zones:3: what");
}

TEST(Ready, TellsThatThereIsNoZone) {
  ipc::StatusResult status = healthy();
  status.zones = status.zones_loaded = 0;
  EXPECT_TRUE(has_no_zone(status));
  EXPECT_EQ(why_not_ready(status, false), "");
  EXPECT_EQ(why_not_ready(status, true), "no zone is configured: every query is refused");
  status.zone_lists = "reading";  // zones may follow
  EXPECT_FALSE(has_no_zone(status));
  EXPECT_EQ(why_not_ready(status, true), "the zone lists are being read");
}

TEST(Ready, MayNeedAnAddress) {
  ipc::StatusResult status = healthy();
  const auto why = [&status](const char* address) {
    return why_not_answered(status, *IpAddress::from_text(address), {"192.0.2.1", "192.0.2.9"});
  };
  EXPECT_EQ(why("192.0.2.1"), "");
  EXPECT_EQ(why("192.0.2.9"), "192.0.2.9: is no address of server.listen");
  status.addresses["192.0.2.1@53"] = "in use";
  EXPECT_EQ(why("192.0.2.1"), "192.0.2.1: in use");
  // Open once more at another port, and an address that only another host has.
  status.addresses["192.0.2.1@5300"] = "";
  status.addresses["192.0.2.2@53"] = "";
  EXPECT_EQ(why("192.0.2.1"), "");
  EXPECT_EQ(why("192.0.2.2"), "192.0.2.2: is no address of this host");
}

TEST(Ready, AWildcardCoversItsFamily) {
  ipc::StatusResult status = healthy();
  status.addresses = {{"0.0.0.0@53", ""}, {"::@53", "in use"}};
  const std::set<std::string> own = {"192.0.2.9", "2001:db8::9"};
  EXPECT_EQ(why_not_answered(status, *IpAddress::from_text("192.0.2.9"), own), "");
  EXPECT_EQ(why_not_answered(status, *IpAddress::from_text("2001:db8::9"), own),
            "2001:db8::9: in use");
}

}  // namespace status_view_test
}  // namespace pando::ctl
