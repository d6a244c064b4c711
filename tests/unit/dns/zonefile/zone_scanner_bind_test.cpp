// What this scanner reads and what BIND's named-checkzone reads must be the same wire data. BIND's
// side is taken in its raw format, so that no text reader of ours is involved in it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "dns/rdata/rdata.h"
#include "dns/zonefile/zone_scanner.h"
#include "dns/zonefile/zone_text.h"
#include "tests/support/trees.h"

namespace pando::dns {
namespace zone_scanner_bind_test {

using ::testing::IsEmpty;

struct Record {
  Bytes owner;  // in lower case: BIND keeps one spelling per name
  std::uint16_t type = 0;
  std::uint32_t ttl = 0;
  Bytes rdata;
  auto operator<=>(const Record&) const = default;
};

std::string describe(const Record& record) {
  const auto type = static_cast<RRType>(record.type);
  return fmt::format("{} {} {} {}", to_text(NameView(record.owner.data(), record.owner.size())),
                     record.ttl, to_text(type), rdata_to_text(type, record.rdata));
}

std::vector<std::string> describe_missing(const std::vector<Record>& from,
                                          const std::vector<Record>& in) {
  std::vector<std::string> missing;
  for (const Record& record : from)
    if (!std::ranges::binary_search(in, record) && missing.size() < 10)
      missing.push_back(describe(record));
  return missing;
}

/// Sorted, without duplicates (RFC 2181 §5), as a zone holds them.
std::vector<Record> as_set(std::vector<Record> records) {
  std::ranges::sort(records);
  records.erase(std::unique(records.begin(), records.end()), records.end());
  return records;
}

/// Reads the file that `named-checkzone -F raw` writes: a header of 24 octets, then RRsets of
/// (total length 4, class 2, type 2, covers 2, TTL 4, count 4, owner, RDATAs), the latter behind
/// lengths of 2.
std::vector<Record> parse_raw(const Bytes& raw) {
  std::vector<Record> records;
  for (std::size_t at = 24; at < raw.size();) {
    const auto take = [&](std::size_t octets) {
      std::uint32_t value = 0;
      for (; octets > 0; --octets) value = (value << 8) | raw.at(at++);
      return value;
    };
    const auto take_octets = [&](bool fold) {
      Bytes octets;
      for (std::uint32_t left = take(2); left > 0; --left)
        octets.push_back(fold ? kFoldCase[raw.at(at++)] : raw.at(at++));
      return octets;
    };
    take(4);
    EXPECT_EQ(take(2), 1U);
    Record record;
    record.type = static_cast<std::uint16_t>(take(2));
    take(2);
    record.ttl = take(4);
    const std::uint32_t count = take(4);
    record.owner = take_octets(true);
    for (std::uint32_t i = 0; i < count; ++i) {
      record.rdata = take_octets(false);
      records.push_back(record);
    }
  }
  return as_set(std::move(records));
}

bool bind_is_there() { return std::system("named-checkzone -v >/dev/null 2>&1") == 0; }

class SameAsBind : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!bind_is_there()) GTEST_SKIP() << "named-checkzone is not installed";
    folder_ = ::testing::TempDir() + "same_as_bind." + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  std::string write(const std::string& file, std::string_view text) {
    std::ofstream(folder_ + "/" + file, std::ios::binary) << text;
    return folder_ + "/" + file;
  }

  /// Checks off, as far as they are not about reading: names of hosts, missing addresses and so on.
  std::vector<Record> read_with_bind(const std::string& origin, const std::string& path) {
    const std::string raw = folder_ + "/raw";
    const std::string command = fmt::format(
        "cd '{}' && named-checkzone -i none -k ignore -m ignore -M ignore -n ignore -r ignore "
        "-S ignore -W ignore -F raw -o '{}' '{}' '{}' >'{}/log' 2>&1",
        folder_, raw, origin, path, folder_);
    if (std::system(command.c_str()) != 0) {
      std::ifstream log(folder_ + "/log");
      ADD_FAILURE() << "BIND refuses " << path << ":\n"
                    << std::string(std::istreambuf_iterator<char>(log), {});
      return {};
    }
    std::ifstream file(raw, std::ios::binary);
    return parse_raw(Bytes(std::istreambuf_iterator<char>(file), {}));
  }

  static std::vector<Record> read_with_scanner(const std::string& origin, const std::string& path) {
    std::vector<Record> records;
    ScanOptions options;
    options.origin = Name::from_text(origin).value();
    const ScanReport report =
        scan_zone_file(path, options, [&](const ScannedRecord& scanned) -> Status {
          Record record;
          for (const std::uint8_t octet : scanned.owner.bytes())
            record.owner.push_back(kFoldCase[octet]);
          record.type = static_cast<std::uint16_t>(scanned.type);
          record.ttl = scanned.ttl.seconds;
          record.rdata.assign(scanned.rdata.begin(), scanned.rdata.end());
          records.push_back(std::move(record));
          return {};
        });
    EXPECT_THAT(report.errors, IsEmpty());
    return as_set(std::move(records));
  }

  void expect_same(const std::string& origin, const std::string& path) {
    const std::vector<Record> theirs = read_with_bind(origin, path);
    const std::vector<Record> ours = read_with_scanner(origin, path);
    EXPECT_FALSE(theirs.empty());
    EXPECT_EQ(describe_missing(theirs, ours), std::vector<std::string>{}) << "BIND's only";
    EXPECT_EQ(describe_missing(ours, theirs), std::vector<std::string>{}) << "ours only";
    EXPECT_EQ(ours.size(), theirs.size());
    expect_rewritten_is_same(origin, theirs);
  }

  /// What ZoneTextWriter makes of the records is read back by both as what it was.
  void expect_rewritten_is_same(const std::string& origin, const std::vector<Record>& records) {
    for (const bool relative : {false, true}) {
      std::string text;
      ZoneTextWriter writer(Name::from_text(origin).value(), {.relative_owners = relative},
                            [&text](std::string_view block) -> Status {
                              text += block;
                              return {};
                            });
      for (const Record& record : records)
        EXPECT_TRUE(writer.add(NameView(record.owner.data(), record.owner.size()),
                               static_cast<RRType>(record.type), Ttl{record.ttl}, record.rdata));
      EXPECT_TRUE(writer.finish());
      const std::string path = write("rewritten", text);
      EXPECT_EQ(describe_missing(records, read_with_scanner(origin, path)),
                std::vector<std::string>{});
      EXPECT_TRUE(read_with_scanner(origin, path) == records);
      EXPECT_TRUE(read_with_bind(origin, path) == records);
    }
  }

  void expect_same_text(std::string_view text) {
    const std::string apex = "@ 9 SOA ns hm 1 2 3 4 500\n@ 9 NS ns\nns 9 A 192.0.2.1\n";
    expect_same("example.", write("zone", "$TTL 9\n" + apex + std::string(text)));
  }

  std::string folder_;
};

TEST_F(SameAsBind, WordsAndLines) {
  expect_same_text(R"(x TXT ("foo" ; c(om"
 bar
)
y ( TXT a
  b ) ; c
z A(192.0.2.1)
(w)A(192.0.2.2)
( v A 192.0.2.3
)
(
u A 192.0.2.4
)
t TXT a;b
	 TXT c "d" ; e
 ; foo
; bar

()
s A 192.0.2.5
(
)
 A 192.0.2.6
r TXT a"b"c"d e"
q TXT "" "" x
p TXT a\ b \; \( \) "\"" "\\" \\ \"
o TXT "\000\001\127\128\255" \000\001\127\128\255
n TXT (((a) b) c)
)");
}

TEST_F(SameAsBind, LineEnds) {
  expect_same_text("x A 192.0.2.1\r\ny A 192.0.2.2\r\n\r\nz TXT (a\r\nb)\r\n A 192.0.2.3\r\n");
  expect_same_text("x A 192.0.2.1\ry A 192.0.2.2\r");
  expect_same_text("x A 192.0.2.1\n A 192.0.2.2");
  expect_same_text("x TXT \"a\\\nb\"\n");
  expect_same_text("x TXT \"a\rb\"\n");
}

TEST_F(SameAsBind, Names) {
  expect_same_text(R"(a\.b A 192.0.2.1
\@ A 192.0.2.1
"q" A 192.0.2.1
\000x\255 A 192.0.2.1
fo\o A 192.0.2.1
\097b A 192.0.2.1
A A 192.0.2.1
IN IN A 192.0.2.1
1h A 192.0.2.1
\$x A 192.0.2.1
x$y A 192.0.2.1
* MX 1 @
a.*.b CNAME *.a
MiXeD NS mIxEd.NAME
x MX 5 .
y MX 5 y.
abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk.a.b.c.d.e.f A 192.0.2.1
1234567890123456.x A 192.0.2.1
123456789012345.x A 192.0.2.1
12345678901234567.x.example. A 192.0.2.1
)");
  expect_same_text("\xC3\xA4 TXT \xC3\xA4 \"\xC3\xA4\"\n");
}

TEST_F(SameAsBind, HeadsAndOrigins) {
  expect_same_text(R"(a 1 IN A 192.0.2.1
b IN 1h A 192.0.2.1
c 1w2d3h4m5s IN A 192.0.2.1
d in a 192.0.2.1
e CLASS1 TYPE1 192.0.2.1
f class1 5 TyPe28 ::1
g TYPE1 \# 4 01020304
h TYPE65280 \# 3 01 0203
i TYPE65280 \# 0
$ORIGIN sub
a A 192.0.2.1
$ORIGIN sub2.example.
a A 192.0.2.1
 AAAA ::1
$TTL 77
b MX 1 a
$TTL 1d
c MX 1 a
d 4 MX 1 a
e MX 1 a
$origin .
x.example MX 1 a
$ttl 12
@.example TXT x
)");
}

TEST_F(SameAsBind, TtlsWithoutTtlDirective) {
  expect_same("example.", write("zone",
                                "@ SOA ns hm 1 2 3 4 500\n@ NS ns\nns A 192.0.2.1\n"
                                "a 7 A 192.0.2.1\nb A 192.0.2.1\n$TTL 3\nc A 192.0.2.1\n"));
  expect_same("example.", write("zone",
                                "@ 77 SOA ns hm 1 2 3 4 500\n@ NS ns\nns 99 A 192.0.2.1\n"
                                "a A 192.0.2.1\n$TTL 5\nb A 192.0.2.1\nc 7 A 192.0.2.1\n"
                                "d A 192.0.2.1\n"));
  expect_same("example.", write("zone",
                                "@ 77 SOA ns hm 1 2 3 4 500\n@ NS ns\nns 2147483648 A 192.0.2.1\n"
                                "a 2147483647 A 192.0.2.1\n$TTL 4294967295\nb A 192.0.2.1\n"));
}

TEST_F(SameAsBind, Includes) {
  write("one", " A 192.0.2.7\nfoo A 192.0.2.1\n$ORIGIN bar\n$TTL 77\nx A 192.0.2.3\n");
  write("two", "y A 192.0.2.1\n$INCLUDE one deeper\n A 192.0.2.2");
  expect_same_text(
      "a 77 TXT x\n$INCLUDE one\nb A 192.0.2.1\n$INCLUDE two sub ; c\nc A 192.0.2.1\n"
      "$INCLUDE \"one\" other.example.\n");
}

TEST_F(SameAsBind, Generate) {
  expect_same_text(R"zone($GENERATE 1-3 a$ A 192.0.2.$
$GENERATE 1-20/3 b${0,3,d} A 192.0.2.${-1}
$GENERATE 10-12 c${5,4,x} TXT a${0,4,X}b${0,0,o}\$c$$
$GENERATE 10-12 ${0,4,n}example. TXT ${0,3,N}
$GENERATE 10-12 d$ TXT "${0,1,n} ${0,2,n} ${0,0,N} ${255,7,n} ${255,8,N} ${65535,0,n}"
$GENERATE 10-12 e$ TXT ${4095,0,x}.${4095,0,o}.${4095,9,o}.${4095}.${-20}.${-20,5}.${-20,5,x}
$GENERATE 1-2 f$ 77 IN A 192.0.2.$
$GENERATE 1-2 g$ IN 78 A 192.0.2.$
$GENERATE 1-2 h$ MX "10 foo$"
$GENERATE 1-2 i$ TXT "foo $ bar"
$GENERATE 1-2 j$ TXT "\"foo $ bar\" \\\"x\""
$GENERATE 1-2 k$ TXT foo\ $
$GENERATE 1-2 l${1,60} A 192.0.2.1
$GENERATE 1-2 m${1}} A 192.0.2.1
$GENERATE 1-2 n${-5} A 192.0.2.1
$GENERATE 1-2 o${-5,4,x} A 192.0.2.1
$GENERATE 1-2 p${-5,4,d} A 192.0.2.1
$GENERATE 1-2 q${-1,4,d} A 192.0.2.1
$GENERATE 1-2 r${-5,0,n} A 192.0.2.1
$GENERATE 1-2 s\$ A 192.0.2.1
$GENERATE 1-2 t\\$ A 192.0.2.1
$GENERATE 1-2 u\065$ A 192.0.2.1
$GENERATE 1-2 v$$ A 192.0.2.1
$GENERATE 1-2 w$$$ A 192.0.2.1
$GENERATE 1-2 x\$$ TXT \$
$GENERATE 1-2 y TXT \a\\b\\\\$
$GENERATE 1-2 z$ TYPE1 "\# 4 0101010$"
$GENERATE 1-2 aa$ TXT "a$;b"
$GENERATE 1-2 ab$ TXT "(a$)"
$GENERATE 1-2 ac$ TXT {$}
$GENERATE 2147483646-2147483647 ad$ A 192.0.2.1
$GENERATE 1-2/2147483647 ae$ CNAME $
$generate 0-2 af TXT ${0,63,n}
$GENERATE 0-255/16 ${0,1,n}.ip6 PTR host-${0,2,x}.net.
$GENERATE 1-2 @ A 192.0.2.$
$GENERATE 7-9 ag$ TXT ${0,127,d}${0,126,n}
)zone");
}

TEST_F(SameAsBind, ExampleZones) {
  const std::string zones = pando::tests::source_path("/config/zones/");
  for (const char* origin : {"example.com.", "example.net.", "2.0.192.in-addr.arpa.",
                             "signed.example.", "signed3.example."})
    expect_same(origin, zones + origin + "zone");
}

TEST_F(SameAsBind, RootZone) {
  const char* const shared = std::getenv("PANDO_SHARED");
  const std::string path =
      (shared != nullptr ? std::string(shared) : pando::tests::source_path("/../shared")) +
      "/data/root-2021-05-19.zone";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  expect_same(".", path);
}

}  // namespace zone_scanner_bind_test
}  // namespace pando::dns
