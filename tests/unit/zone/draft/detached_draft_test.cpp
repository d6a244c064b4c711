#include "zone/draft/detached_draft.h"

#include <gmock/gmock.h>

#include "tests/unit/zone/draft/zone_fixture.h"
#include "zone/draft/discarded_blocks.h"

namespace pando::zone {
namespace detached_draft_test {

using ::testing::Contains;
using testing::dump;
using testing::kSmallZone;
using testing::name;
using ::testing::Not;
using testing::record;

class Detached : public testing::ZoneTest {
 protected:
  Detached() { EXPECT_TRUE(load("example.", kSmallZone)); }

  static Changeset change(std::string_view added) {
    Changeset changes;
    changes.zone = name("example.");
    changes.removed.push_back(
        record("example. 0 SOA ns.example. admin.example. 7 7200 3600 1209600 300"));
    changes.added.push_back(
        record("example. 3600 SOA ns.example. admin.example. 8 7200 3600 1209600 300"));
    changes.added.push_back(record(added));
    return changes;
  }
  Status adopt(DetachedDraft& made) {
    shm::Transaction transaction = store_->begin();
    const auto current = store_->current();
    Draft draft(transaction, current.root, current.number + 1);
    if (auto done = made.adopt(transaction, draft); !done) return done;
    return status_of(store_->publish(std::move(transaction), draft.root(), 0));
  }
};

TEST_F(Detached, NothingIsSeenBeforeTheAdoption) {
  const auto before = dump(zone("example."));
  DetachedDraft made(*store_, store_->current(), name("example."));
  ASSERT_TRUE(made.draft().apply(change("new.example. 60 A 192.0.2.99"), {}));
  EXPECT_EQ(dump(zone("example.")), before);
  ASSERT_TRUE(adopt(made));
  EXPECT_THAT(dump(zone("example.")), Contains("new.example. 60 A 192.0.2.99"));
  EXPECT_EQ(zone("example.").serial(), dns::Serial{8});
  EXPECT_EQ(zone("example.").data_version(), store_->current().number);
  EXPECT_TRUE(store_->check());
}

/// The history of all zones is one sum in the root, which other zones' changes move meanwhile.
TEST_F(Detached, TheHistoryIsAddedToThatOfTheOtherZones) {
  ASSERT_TRUE(load("other.", {"other. 60 SOA a. b. 1 2 3 4 5", "other. 60 NS a."}));
  DetachedDraft made(*store_, store_->current(), name("example."));
  ASSERT_TRUE(made.draft().apply(change("new.example. 60 A 192.0.2.99"), {}));
  ASSERT_TRUE(
      apply("other.", {"other. 60 SOA a. b. 1 2 3 4 5"}, {"other. 60 SOA a. b. 2 2 3 4 5"}));
  ASSERT_TRUE(adopt(made));
  ASSERT_GT(zone("example.").history_bytes(), 0U);
  EXPECT_EQ(view().history_bytes(),
            zone("example.").history_bytes() + zone("other.").history_bytes());
}

TEST_F(Detached, ADraftOfAZoneThatChangedMeanwhileIsRefused) {
  DetachedDraft made(*store_, store_->current(), name("example."));
  ASSERT_TRUE(made.draft().apply(change("new.example. 60 A 192.0.2.99"), {}));
  EXPECT_TRUE(made.fits(view()));
  ASSERT_TRUE(apply("example.", {}, {"www.example. 300 A 192.0.2.12"}));
  EXPECT_FALSE(made.fits(view()));
  const auto refused = adopt(made);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kExists);
  EXPECT_THAT(dump(zone("example.")), Not(Contains("new.example. 60 A 192.0.2.99")));
}

/// A configuration that is reloaded in between does not cost the work, and is not undone by it.
TEST_F(Detached, NewSettingsOfTheZoneStay) {
  DetachedDraft made(*store_, store_->current(), name("example."));
  ASSERT_TRUE(made.draft().apply(change("new.example. 60 A 192.0.2.99"), {}));
  ZoneSettings settings;
  settings.is_secondary = true;
  ASSERT_TRUE(
      commit([&](Draft& draft) { return draft.put_zone_settings(name("example."), settings, 5); }));
  ASSERT_TRUE(adopt(made));
  EXPECT_EQ(zone("example.").side_index(), 5U);
  EXPECT_EQ(zone("example.").settings_tag(), EncodedSettings(settings).tag);
  EXPECT_THAT(dump(zone("example.")), Contains("new.example. 60 A 192.0.2.99"));
}

/// Data that the draft discarded are released after the adoption, besides those of other zones.
TEST_F(Detached, DiscardedDataOfTheDraftAreDismantledLater) {
  ASSERT_TRUE(load("other.", {"other. 60 SOA a. b. 1 2 3 4 5", "other. 60 NS a."}));
  ASSERT_TRUE(apply("example.",
                    {"example. 0 SOA ns.example. admin.example. 7 7200 3600 1209600 300"},
                    {"example. 3600 SOA ns.example. admin.example. 8 7200 3600 1209600 300"}));
  ASSERT_TRUE(commit([](Draft& draft) { return draft.unload_zone(name("other.")); }));
  DetachedDraft made(*store_, store_->current(), name("example."));
  // No new serial: the history ends, and its blocks are discarded.
  Changeset changes;
  changes.zone = name("example.");
  changes.added.push_back(record("new.example. 60 A 192.0.2.99"));
  ASSERT_TRUE(made.draft().apply(changes, {}));
  ASSERT_TRUE(adopt(made));
  EXPECT_EQ(view().history_bytes(), 0U);
  ASSERT_TRUE(view().has_discarded());
  while (!commit([](Draft& draft) { return dismantle_discarded(draft, 1000); }).value()) continue;
  EXPECT_FALSE(view().has_discarded());
  EXPECT_TRUE(store_->check());
}

}  // namespace detached_draft_test
}  // namespace pando::zone
