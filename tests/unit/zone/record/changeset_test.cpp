#include "zone/record/changeset.h"

#include <gtest/gtest.h>

#include "tests/unit/zone/draft/zone_fixture.h"

namespace pando::zone {
namespace changeset_test {

using testing::name;
using testing::record;

Changeset example() {
  Changeset changes;
  changes.zone = name("example.");
  changes.removed.push_back(record("www.example. 0 A 192.0.2.1"));
  changes.added.push_back(record("www.example. 300 A 192.0.2.2"));
  changes.added.push_back(record("t.example. 60 TXT \"some text\""));
  changes.added.push_back(record("empty.example. 61 NULL \\# 0"));
  changes.author = {"key admin.", "192.0.2.53"};
  return changes;
}

void expect_same(const std::vector<Record>& found, const std::vector<Record>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].owner, expected[i].owner);
    EXPECT_EQ(found[i].type, expected[i].type);
    EXPECT_EQ(found[i].ttl, expected[i].ttl);
    EXPECT_EQ(found[i].rdata, expected[i].rdata);
  }
}

TEST(ChangesetForm, IsReadAsItWasWritten) {
  const Changeset before = example();
  const auto after = decode_changes(encode(before));
  ASSERT_TRUE(after) << after.error().text;
  EXPECT_EQ(after->zone, before.zone);
  expect_same(after->removed, before.removed);
  expect_same(after->added, before.added);
  EXPECT_EQ(after->author, before.author);
}

TEST(ChangesetForm, HasNoAuthorWhoIsNotKnown) {
  Changeset changes = example();
  const std::size_t with_author = encode(changes).size();
  changes.author = {};
  const Bytes bytes = encode(changes);
  EXPECT_EQ(bytes.size(), with_author - 2 - std::string("key admin.192.0.2.53").size());
  EXPECT_FALSE(decode_changes(bytes)->author.is_known());
}

/// Journals and dumps on a damaged disk: a form that lost its end is never another changeset. The
/// form without its author is whole, since the author is optional.
TEST(ChangesetForm, CutOffAnywhereIsCorrupt) {
  const Bytes whole = encode(example());
  Changeset anonymous = example();
  anonymous.author = {};
  const std::size_t without_author = encode(anonymous).size();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    if (length == without_author) continue;
    const auto read = decode_changes(ByteView(whole).first(length));
    ASSERT_FALSE(read) << length;
    EXPECT_EQ(read.error().code, Errc::kCorrupt);
  }
}

TEST(ChangesetForm, WithMoreAfterItsEndIsCorrupt) {
  Bytes bytes = encode(example());
  bytes.push_back(0);
  EXPECT_FALSE(decode_changes(bytes));
}

/// A count of four billion records must not be reserved before they are there.
TEST(ChangesetForm, WithAWildCountIsCorruptAndCostsNoMemory) {
  Changeset empty;
  empty.zone = name("example.");
  Bytes bytes = encode(empty);
  const std::size_t counts = bytes.size() - 8;
  store_be32(bytes.data() + counts, 0xFFFFFFFF);
  EXPECT_FALSE(decode_changes(bytes));
}

/// Both texts come from strangers, and go to terminals.
TEST(Authors, HaveShortPlainText) {
  const Author author = make_author("key \x1b[31mred\n", std::string(500, 'x'));
  EXPECT_EQ(author.name, "key ?[31mred?");
  EXPECT_EQ(author.client, std::string(kMaxAuthorText, 'x'));
}

}  // namespace changeset_test
}  // namespace pando::zone
