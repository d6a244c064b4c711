#include "manager/signing/keys/zone_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/secret.h"
#include "dns/dnssec/key_file.h"
#include "dns/folded_key.h"
#include "manager/signing/keys/signed_zone_list.h"
#include "tests/unit/manager/io/failing_files.h"
#include "tests/unit/shm/support.h"

namespace pando::manager {
namespace zone_keys_test {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

dns::Name key_zone(std::string_view text) { return dns::Name::from_text(text).value(); }

class ZoneKeysTest : public ::testing::Test {
 protected:
  Result<OpenedKeys> open(std::string_view zone, bool is_signed = false) {
    auto opened =
        open_zone_keys(native_files(), folder_.path(), {{key_zone(zone), {13}, is_signed}});
    EXPECT_THAT(opened, SizeIs(1));
    return std::move(opened.front());
  }
  [[nodiscard]] std::vector<std::string> files_of(std::string_view zone) const {
    std::vector<std::string> files;
    const auto folder = key_folder(folder_.path(), key_zone(zone)).value();
    for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
    return files;
  }
  static Bytes dnskey(const Result<OpenedKeys>& signer) {
    return signer->keys->all().front().dnskey();
  }

  shm::test::Folder folder_;
};

TEST_F(ZoneKeysTest, AZoneThatHadNoneGetsAKeyThatStays) {
  const auto first = open("Example.org.");
  ASSERT_TRUE(first) << first.error().text;
  const auto files = files_of("example.org.");
  ASSERT_THAT(files, SizeIs(1));
  struct stat status{};
  ASSERT_EQ(::stat(files.front().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  const auto again = open("example.org.", true);
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_EQ(dnskey(first), dnskey(again));
  EXPECT_THAT(read_signed_zones(native_files(), folder_.path()).value(), SizeIs(1));
}

TEST_F(ZoneKeysTest, EachZoneHasItsOwn) {
  const auto opened =
      open_zone_keys(native_files(), folder_.path(),
                     {{key_zone("a.test."), {13}}, {key_zone("b.test."), {15}}});
  ASSERT_THAT(opened, SizeIs(2));
  ASSERT_TRUE(opened[0] && opened[1]);
  EXPECT_EQ(opened[0]->keys->all().front().algorithm(), 13);
  EXPECT_EQ(opened[1]->keys->all().front().algorithm(), 15);
  EXPECT_NE(dnskey(opened[0]), dnskey(opened[1]));
}

/// Its parent may have a DS record of keys that are still to come.
TEST_F(ZoneKeysTest, APolicyThatMakesNoKeysWaitsForThem) {
  const auto open_one = [this](bool may_make) {
    return std::move(open_zone_keys(native_files(), folder_.path(),
                                    {{key_zone("example."), {13}, false, may_make}})
                         .front());
  };
  const auto waiting = open_one(false);
  ASSERT_FALSE(waiting);
  EXPECT_EQ(waiting.error().code, Errc::kNotFound);
  EXPECT_THAT(waiting.error().text, HasSubstr("'pandoctl dnssec import'"));
  EXPECT_FALSE(fs::exists(folder_.path() + "/dnssec"));
  EXPECT_THAT(read_signed_zones(native_files(), folder_.path()).value(), IsEmpty());
  const auto made = open_one(true);
  ASSERT_TRUE(made);
  EXPECT_EQ(dnskey(made), dnskey(open_one(false))) << "a key that is there is used";
}

/// Its data may be signed by others: nobody knows before they are read.
TEST_F(ZoneKeysTest, AZoneWhoseDataAreNotKnownWaitsForThem) {
  const auto open_one = [this](bool is_signed, bool is_known) {
    return std::move(open_zone_keys(native_files(), folder_.path(),
                                    {{key_zone("example."), {13}, is_signed, true, is_known}})
                         .front());
  };
  const auto waiting = open_one(false, false);
  ASSERT_TRUE(waiting);
  EXPECT_TRUE(waiting->awaits_source && !waiting->keys);
  EXPECT_FALSE(fs::exists(folder_.path() + "/dnssec"));
  EXPECT_THAT(read_signed_zones(native_files(), folder_.path()).value(), IsEmpty());
  EXPECT_EQ(open_one(true, true).error().code, Errc::kNotFound);
  EXPECT_FALSE(fs::exists(folder_.path() + "/dnssec"));
  const auto made = open_one(false, true);
  ASSERT_TRUE(made && made->keys);
  const auto again = open_one(false, false);
  ASSERT_TRUE(again && again->keys && !again->awaits_source) << "a key that is there is used";
}

TEST_F(ZoneKeysTest, TheUnfinishedFileOfAKeyIsRemoved) {
  ASSERT_TRUE(open("example."));
  const std::string ours = files_of("example.").front();
  std::ofstream(fs::path(ours).parent_path() / "013-00001.pem.partial") << "half a key";
  ASSERT_TRUE(open("example."));
  EXPECT_THAT(files_of("example."), ElementsAre(ours));
}

TEST_F(ZoneKeysTest, FactsThatStayAreNotWritten) {
  testing::FailingFiles files;
  int writes = 0;
  files.fail = [&writes](testing::FailingFiles::Call call, const std::string& path) {
    writes += call == testing::FailingFiles::Call::kWrite && path.find("/facts") != std::string::npos;
    return Status();
  };
  ASSERT_TRUE(open("example."));
  const auto edit = [&](std::uint64_t ds_seen) {
    return edit_signing_facts(files, folder_.path(), key_zone("example."),
                              [&](SigningFacts& facts) { facts.ds_seen = ds_seen; });
  };
  ASSERT_TRUE(edit(5));
  EXPECT_EQ(writes, 1);
  ASSERT_TRUE(edit(5));
  EXPECT_EQ(writes, 1);
  ASSERT_TRUE(edit(6));
  EXPECT_EQ(writes, 2);
}

/// Each call of a first key fails once: disk full, read-only, EIO. No key signs that is not durable
/// with its folder and the list, and no key is lost.
TEST_F(ZoneKeysTest, ADiskThatFailsAtAnyStepLosesNoKey) {
  for (int failing = 0;; ++failing) {
    const std::string zone = fmt::format("z{}.test.", failing);
    testing::FailingFiles files;
    int calls = 0;
    files.fail = [&](testing::FailingFiles::Call, const std::string& path) -> Status {
      return calls++ == failing ? Status(fail(Errc::kIo, "{}: Input/output error", path)) : Status();
    };
    const auto first = std::move(
        open_zone_keys(files, folder_.path(), {{key_zone(zone), {15}, false}}).front());
    if (calls <= failing) {  // nothing has failed
      EXPECT_GT(failing, 8) << "folder, key, names and list were among the calls";
      ASSERT_TRUE(first);
      break;
    }
    const auto healed = open(zone);
    ASSERT_TRUE(healed) << failing << ": " << healed.error().text;
    if (first) EXPECT_EQ(dnskey(first), dnskey(healed)) << failing;
    EXPECT_THAT(files_of(zone), SizeIs(1)) << failing;
    EXPECT_TRUE(read_signed_zones(native_files(), folder_.path())
                    .value()
                    .contains(dns::folded_key(key_zone(zone))))
        << failing;
  }
}

TEST_F(ZoneKeysTest, FactsOfADiskThatFailsAreThoseOfBeforeOrAfter) {
  ASSERT_TRUE(open("example."));
  const auto folder = key_folder(folder_.path(), key_zone("example.")).value();
  for (int failing = 0;; ++failing) {
    testing::FailingFiles files;
    int calls = 0;
    files.fail = [&](testing::FailingFiles::Call, const std::string&) -> Status {
      return calls++ == failing ? Status(fail(Errc::kIo, "No space left on device")) : Status();
    };
    const auto before = read_signing_facts(native_files(), folder).value();
    const auto edited =
        edit_signing_facts(files, folder_.path(), key_zone("example."),
                           [](SigningFacts& facts) { ++facts.signed_since; });
    const auto now = read_signing_facts(native_files(), folder);
    ASSERT_TRUE(now) << failing;
    EXPECT_TRUE(now->signed_since == before.signed_since ||
                now->signed_since == before.signed_since + 1);
    if (edited) EXPECT_EQ(now->signed_since, before.signed_since + 1) << failing;
    if (calls > failing) {
      EXPECT_FALSE(edited) << failing;
      continue;
    }
    EXPECT_GT(failing, 3);
    break;
  }
}

TEST_F(ZoneKeysTest, KeysThatAreGoneMakeNoOthers) {
  ASSERT_TRUE(open("example."));
  for (const std::string& file : files_of("example.")) fs::remove(file);
  EXPECT_THAT(open("example.").error().text, HasSubstr("are not there"));
  EXPECT_THAT(files_of("example."), IsEmpty());
  fs::remove_all(folder_.path() + "/dnssec");
  EXPECT_EQ(open("example.").error().code, Errc::kNotFound);
  EXPECT_FALSE(fs::exists(folder_.path() + "/dnssec"));
}

TEST_F(ZoneKeysTest, AZoneThatSomebodySignedMakesNone) {
  EXPECT_THAT(open("foreign.", true).error().text, HasSubstr("signed by keys that are not there"));
  EXPECT_FALSE(fs::exists(folder_.path() + "/dnssec"));
  EXPECT_THAT(read_signed_zones(native_files(), folder_.path()).value(), IsEmpty());
}

TEST_F(ZoneKeysTest, AKeyThatCannotBeUsedIsAnError) {
  ASSERT_TRUE(open("example."));
  ASSERT_TRUE(open("other."));
  const std::string ours = files_of("example.").front();
  ::chmod(ours.c_str(), 0644);
  EXPECT_THAT(open("example.").error().text, HasSubstr(ours));
  ::chmod(ours.c_str(), 0600);
  ASSERT_TRUE(open("example."));
  // A second one that is another zone's.
  fs::copy(files_of("other.").front(), fs::path(ours).parent_path() / "second.pem");
  EXPECT_THAT(open("example.").error().text, HasSubstr("the key is of zone other."));
  fs::resize_file(fs::path(ours).parent_path() / "second.pem", 20);
  EXPECT_THAT(open("example.").error().text, HasSubstr("second.pem"));
}

TEST_F(ZoneKeysTest, AListThatCannotBeReadMakesNoKeys) {
  std::ofstream(folder_.path() + "/signed-zones.list") << "a..b\n";
  EXPECT_EQ(open("example.").error().code, Errc::kCorrupt);
  EXPECT_FALSE(fs::exists(folder_.path() + "/dnssec"));
}

TEST_F(ZoneKeysTest, ANameTooLongForAFolderIsAnError) {
  std::string text;
  for (int i = 0; i < 3; ++i) text += std::string(63, 'x') + ".";
  const auto opened = open(text + std::string(60, 'y') + ".");
  EXPECT_THAT(opened.error().text, HasSubstr("too long"));
}

TEST_F(ZoneKeysTest, TheListKeepsOddNames) {
  const SignedZoneNames names{dns::folded_key(key_zone("#a.test.")),
                              dns::folded_key(key_zone("b\\000c.test.")),
                              dns::folded_key(key_zone("."))};
  ASSERT_TRUE(write_signed_zones(native_files(), folder_.path(), names));
  EXPECT_EQ(read_signed_zones(native_files(), folder_.path()).value(), names);
}

TEST_F(ZoneKeysTest, AListedZoneIsNotServedUnsigned) {
  ASSERT_TRUE(open("example."));
  config::Settings settings;
  settings.store.journal = folder_.path();
  EXPECT_TRUE(check_signed_zones(native_files(), settings)) << "it left the configuration";
  config::ZoneOptions options;
  const auto plain = settings.zones.add_options(options);
  ASSERT_TRUE(settings.zones.add(key_zone("example."), "/zone", plain));
  EXPECT_THAT(check_signed_zones(native_files(), settings).error().text,
              HasSubstr("zone example. is signed here"));
  for (const bool is_secondary : {false, true}) {
    config::Settings others;
    others.store.journal = folder_.path();
    config::ZoneOptions changed;
    changed.dnssec = is_secondary ? "" : "default";
    if (is_secondary) changed.primaries = {"up"};
    ASSERT_TRUE(others.zones.add(key_zone("example."), "/zone",
                                 others.zones.add_options(std::move(changed))));
    EXPECT_TRUE(check_signed_zones(native_files(), others));
  }
}

TEST_F(ZoneKeysTest, AnImportedKeyIsUsedAndNoOtherMade) {
  const WipeFreed wipe_freed;
  const auto key = dns::SigningKey::generate(15, dns::kUsualKeyFlags).value();
  const auto import = [&](std::string_view zone, std::string_view of) {
    const std::string path = folder_.path() + "/given";
    std::ofstream(path) << dns::key_file_text(key, key_zone(of)).value();
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    return import_zone_key(native_files(), folder_.path(), key_zone(zone), file);
  };
  EXPECT_THAT(import("example.", "other.").error().text, HasSubstr("is of zone other."));
  ASSERT_TRUE(import("example.", "example."));
  EXPECT_EQ(import("example.", "example.").error().code, Errc::kExists);
  const auto opened = open("example.", true);
  ASSERT_TRUE(opened) << opened.error().text;
  EXPECT_EQ(dnskey(opened), key.dnskey());
  EXPECT_THAT(files_of("example."), SizeIs(1));
}

TEST_F(ZoneKeysTest, AZoneThatWasUnsignedNeedsNoKeysUntilItIsSignedAgain) {
  const auto first = open("example.");
  ASSERT_TRUE(first);
  const auto edit = [this](std::uint64_t unsigned_since) {
    return edit_signing_facts(
        native_files(), folder_.path(), key_zone("example."),
        [&](SigningFacts& facts) {
          facts.unsign_since = 6;
          facts.unsigned_since = unsigned_since;
        });
  };
  ASSERT_TRUE(edit(7));
  EXPECT_THAT(read_signed_zones(native_files(), folder_.path()).value(), IsEmpty());
  auto opened = open("example.");
  ASSERT_TRUE(opened) << opened.error().text;
  EXPECT_FALSE(opened->keys);
  EXPECT_EQ(opened->facts.unsigned_since, 7U);
  EXPECT_THAT(read_signed_zones(native_files(), folder_.path()).value(), IsEmpty());
  ASSERT_TRUE(edit(0));
  opened = open("example.");
  ASSERT_TRUE(opened && opened->keys);
  EXPECT_EQ(dnskey(opened), dnskey(first)) << "its key stays";
  EXPECT_THAT(read_signed_zones(native_files(), folder_.path()).value(), SizeIs(1));
}

}  // namespace zone_keys_test
}  // namespace pando::manager
