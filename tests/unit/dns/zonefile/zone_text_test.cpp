#include "dns/zonefile/zone_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dns/rdata/rdata.h"
#include "dns/text.h"
#include "dns/zonefile/zone_scanner.h"

namespace pando::dns {
namespace zone_text_test {

using ::testing::IsEmpty;

Name name(std::string_view text) { return Name::from_text(text).value(); }

Bytes rdata(RRType type, std::string_view text) {
  Bytes out;
  const Status read = rdata_from_text(type, text, name("example."), out);
  EXPECT_TRUE(read) << text;
  return out;
}

/// A writer to a string.
struct Writing {
  explicit Writing(ZoneTextOptions options = {}, std::string_view origin = "example.")
      : writer(name(origin), options, [this](std::string_view block) -> Status {
          text += block;
          ++blocks;
          return {};
        }) {}
  void add(std::string_view owner, RRType type, std::string_view rdata_text) {
    EXPECT_TRUE(writer.add(name(owner), type, Ttl{300}, rdata(type, rdata_text)));
  }
  std::string finish() {
    EXPECT_TRUE(writer.finish());
    return text;
  }

  std::string text;
  int blocks = 0;
  ZoneTextWriter writer;
};

TEST(ZoneText, OneRecordPerLineWithAbsoluteNames) {
  Writing writing;
  writing.add("example.", RRType::kNS, "ns.example.");
  writing.add("example.", RRType::kNS, "ns2.example.");
  writing.add("a.example.", RRType::kA, "192.0.2.1");
  EXPECT_EQ(writing.finish(),
            "example. 300 IN NS ns.example.\n"
            "example. 300 IN NS ns2.example.\n"
            "a.example. 300 IN A 192.0.2.1\n");
  EXPECT_EQ(writing.writer.records(), 3U);
}

TEST(ZoneText, RelativeOwnersBehindAnOriginLine) {
  Writing writing({.relative_owners = true});
  writing.add("example.", RRType::kNS, "ns.example.");
  writing.add("a.b.example.", RRType::kA, "192.0.2.1");
  writing.add("other.", RRType::kA, "192.0.2.1");
  writing.add("a.EXAMPLE.", RRType::kA, "192.0.2.1");
  writing.add(".", RRType::kA, "192.0.2.1");
  EXPECT_EQ(writing.finish(),
            "$ORIGIN example.\n"
            "@ 300 IN NS ns.example.\n"
            "a.b 300 IN A 192.0.2.1\n"
            "other. 300 IN A 192.0.2.1\n"
            "a.EXAMPLE. 300 IN A 192.0.2.1\n"
            ". 300 IN A 192.0.2.1\n");
}

TEST(ZoneText, OwnersRelativeToTheRoot) {
  Writing writing({.relative_owners = true}, ".");
  writing.add(".", RRType::kNS, "ns.example.");
  writing.add("com.", RRType::kNS, "ns.example.");
  EXPECT_EQ(writing.finish(), "$ORIGIN .\n@ 300 IN NS ns.example.\ncom 300 IN NS ns.example.\n");
}

TEST(ZoneText, FirstOwnerMayBeTheRoot) {
  Writing writing({}, ".");
  writing.add(".", RRType::kNS, "ns.example.");
  EXPECT_EQ(writing.finish(), ". 300 IN NS ns.example.\n");
}

TEST(ZoneText, UnknownTypesComeInRfc3597Form) {
  Writing writing;
  EXPECT_TRUE(
      writing.writer.add(name("a."), static_cast<RRType>(65000), Ttl{1}, Bytes{0xAB, 0x01}));
  EXPECT_EQ(writing.finish(), "a. 1 IN TYPE65000 \\# 2 AB01\n");
}

TEST(ZoneText, CommentsCannotBreakOut) {
  Writing writing;
  EXPECT_TRUE(writing.writer.comment("serial 7\n@ A 192.0.2.1\r\tx"));
  EXPECT_EQ(writing.finish(), "; serial 7 @ A 192.0.2.1  x\n");
}

TEST(ZoneText, HandsOutBlocksAndStopsAtAnError) {
  Writing writing({.block_bytes = 64});
  for (int i = 0; i < 100; ++i) writing.add("a.example.", RRType::kA, "192.0.2.1");
  EXPECT_EQ(writing.finish().size(), 100 * std::string("a.example. 300 IN A 192.0.2.1\n").size());
  EXPECT_GT(writing.blocks, 30);

  ZoneTextWriter failing(name("example."), {.block_bytes = 1},
                         [](std::string_view) -> Status { return fail(Errc::kIo, "disk full"); });
  const Status added = failing.add(name("a."), RRType::kA, Ttl{1}, Bytes{192, 0, 2, 1});
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().text, "disk full");
}

/// Each name of one label made of each octet, alone and in the middle, survives.
TEST(ZoneText, EveryOctetInALabelIsReadBack) {
  for (const bool relative : {false, true}) {
    Writing writing({.relative_owners = relative});
    std::vector<Name> owners;
    for (int octet = 0; octet < 256; ++octet) {
      const auto c = static_cast<std::uint8_t>(octet);
      owners.push_back(Name::join(Bytes{1, c}, name("example.")).value());
      owners.push_back(Name::join(Bytes{3, 'a', c, c}, name("example.")).value());
    }
    for (const Name& owner : owners)
      EXPECT_TRUE(writing.writer.add(owner, RRType::kA, Ttl{1}, Bytes{192, 0, 2, 1}));
    std::size_t at = 0;
    ScanOptions options;
    options.origin = name("example.");
    const ScanReport report = scan_zone_text(
        writing.finish(), "zone", options, [&](const ScannedRecord& record) -> Status {
          if (at >= owners.size()) return fail(Errc::kInvalid, "too many records");
          EXPECT_TRUE(std::ranges::equal(record.owner.bytes(), owners[at].view().bytes()))
              << to_text(owners[at]);
          ++at;
          return {};
        });
    EXPECT_THAT(report.errors, IsEmpty());
    EXPECT_EQ(at, owners.size());
  }
}

TEST(ZoneText, NameTextIsThatOfToText) {
  for (const char* text :
       {".", "example.", "a\\.b.\\000\\255.x\\@\\$\\(\\)\\;\\\"\\\\y.example.", "\\*.*.-.\\032."}) {
    std::string out;
    append_labels_text(out, name(text).view().bytes());
    EXPECT_EQ(out, to_text(name(text).view()));
  }
}

}  // namespace zone_text_test
}  // namespace pando::dns
