#include "manager/start/zone_lists.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/manager/run_until.h"
#include "tests/unit/shm/support.h"

namespace pando::manager {
namespace zone_lists_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A configuration with one zone list, whose text each test chooses.
class Lists : public ::testing::Test {
 protected:
  ~Lists() override { pool_.join(); }

  /// Zone lists of a configuration that is loaded, but for them.
  void load(const std::string& list) {
    std::ofstream(folder_.path() + "/zones.list") << list;
    const std::string path = folder_.path() + "/pando.yaml";
    std::ofstream(path) << "zone-lists: [zones.list]\n";
    config::LoadResult loaded = config::load(path, {.lists_later = true});
    ASSERT_TRUE(loaded.ok()) << loaded.error_text();
    ASSERT_NE(loaded.lists, nullptr);
    known_ = make_runtime(std::move(loaded.settings)).value();
    make(std::move(loaded.lists));
  }
  void make(UnreadLists unread) {
    ZoneLists::Hooks hooks;
    hooks.read = [this](const RuntimePtr& complete) { complete_ = complete; };
    hooks.failed = [this] { failed_ = true; };
    lists_.emplace(io_, pool_, queue_, std::move(unread), std::move(hooks));
  }
  bool put_off(std::string_view verb) {
    return lists_->put_off(
        verb, [this, verb] { again_.emplace_back(verb); },
        [this](const Result<nlohmann::json>& result) {
          refused_.push_back(result ? "" : result.error().text);
        });
  }
  void send_update() {
    ipc::Forward request;
    request.kind = ipc::ForwardKind::kUpdate;
    queue_.submit(std::move(request), [](const Bytes&) {});
  }
  bool run_until(const std::function<bool()>& done) { return testing::run_until(io_, done); }

  shm::test::Folder folder_;
  asio::io_context io_{1};
  asio::thread_pool pool_{1};
  int updates_ = 0;
  std::vector<std::string> refused_updates_;
  UpdateQueue queue_{io_,
                     [this](ipc::Forward&&, const ForwardReply&) { ++updates_; },
                     [this](ipc::Forward&&, const ForwardReply&, std::string_view why) {
                       refused_updates_.emplace_back(why);
                     },
                     {}};
  RuntimePtr known_;
  RuntimePtr complete_;
  bool failed_ = false;
  std::vector<std::string> again_;
  std::vector<std::string> refused_;
  std::optional<ZoneLists> lists_;
};

TEST_F(Lists, LetCommandsPassWhenThereAreNone) {
  make(nullptr);
  EXPECT_FALSE(lists_->has_unread());
  EXPECT_EQ(lists_->state_text(), "read");
  EXPECT_FALSE(put_off(ipc::verb::kZoneList));
}

TEST_F(Lists, KeepCommandsAndUpdatesUntilTheyAreRead) {
  load("example. example.zone\n");
  lists_->read_later(known_);
  EXPECT_EQ(lists_->state_text(), "reading");
  EXPECT_FALSE(put_off(ipc::verb::kStatus));
  EXPECT_TRUE(put_off(ipc::verb::kZoneList));
  send_update();
  EXPECT_EQ(updates_, 0);
  lists_->worker_serves();
  ASSERT_TRUE(run_until([&] { return complete_ != nullptr || failed_; }));
  ASSERT_FALSE(failed_) << lists_->problem();
  EXPECT_EQ(complete_->settings.zones.size(), 1U);
  EXPECT_THAT(again_, IsEmpty()) << "the caller has yet to take the configuration";
  lists_->accept();
  EXPECT_EQ(lists_->state_text(), "read");
  EXPECT_THAT(again_, ElementsAre("zone-list"));
  EXPECT_TRUE(run_until([&] { return updates_ == 1; }));
}

TEST_F(Lists, RefuseWhatNeedsZonesAfterAnError) {
  load("a line of too many words, none of which is a file\n");
  lists_->read_later(known_);
  EXPECT_TRUE(put_off(ipc::verb::kZoneExport));
  send_update();
  ASSERT_TRUE(run_until([&] { return complete_ != nullptr || failed_; }));
  ASSERT_TRUE(failed_);
  EXPECT_EQ(lists_->state_text(), "failed");
  EXPECT_THAT(lists_->problem(), HasSubstr("zones.list"));
  lists_->refuse_updates();
  EXPECT_THAT(refused_updates_, ElementsAre("the zone lists could not be read"));
  lists_->run_waiting();
  EXPECT_THAT(again_, ElementsAre("zone-export"));
  EXPECT_FALSE(put_off(ipc::verb::kZoneList));
  EXPECT_TRUE(put_off(ipc::verb::kZoneExport));
  EXPECT_THAT(refused_, ElementsAre(HasSubstr("reload when they can: ")));
  lists_->accept();
  EXPECT_THAT(lists_->problem(), IsEmpty()) << "as after a reload";
}

TEST_F(Lists, KeepABoundedNumberOfCommands) {
  load("example. example.zone\n");
  lists_->read_later(known_);
  for (std::size_t i = 0; i < ZoneLists::kMaxWaitingCommands; ++i)
    EXPECT_TRUE(put_off(ipc::verb::kZoneList));
  EXPECT_THAT(refused_, IsEmpty());
  EXPECT_TRUE(put_off(ipc::verb::kZoneList));
  EXPECT_THAT(refused_, ElementsAre("too many commands wait for the zone lists"));
}

TEST_F(Lists, AnswerAllWhenTheProcessEnds) {
  load("example. example.zone\n");
  lists_->read_later(known_);
  EXPECT_TRUE(put_off(ipc::verb::kZoneList));
  send_update();
  lists_->stop();
  EXPECT_TRUE(put_off(ipc::verb::kZoneStatus));
  EXPECT_THAT(refused_, ElementsAre("the zone lists are being read"));
  lists_->give_up();
  EXPECT_THAT(again_, ElementsAre("zone-list"));
  EXPECT_THAT(refused_updates_, ElementsAre("the server is being stopped"));
  io_.run();
  EXPECT_EQ(complete_, nullptr);
}

}  // namespace zone_lists_test
}  // namespace pando::manager
