#include "ctl/signing/sign_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "ctl/signing/key_commands.h"

namespace pando::ctl {
namespace sign_command_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;
namespace fs = std::filesystem;

constexpr std::string_view kZone =
    "$TTL 3600\n@ SOA ns hostmaster 7 3600 900 604800 300\n@ NS ns\nns A 192.0.2.53\n";

TEST(SignatureTime, HasTheFormsOfRfc4034Section32) {
  EXPECT_EQ(time_from_text("20040509183619"), 1084127779U) << "the RFC's own example";
  EXPECT_EQ(time_from_text("1084127779"), 1084127779U);
  EXPECT_EQ(time_from_text("0"), 0U);
  EXPECT_EQ(time_from_text("20240229000000"), 1709164800U);
}

TEST(SignatureTime, OfOtherFormsIsRefused) {
  for (const char* text :
       {"", "tomorrow", "-1", "+5d", "20230229000000", "20231301000000", "2023010100000",
        "202301010000000", "2023-01-01T00:00:00Z", "20230101000060x"})
    EXPECT_FALSE(time_from_text(text)) << text;
}

class Signing : public ::testing::Test {
 protected:
  Signing() {
    char pattern[] = "/tmp/pando-sign-XXXXXX";
    if (::mkdtemp(pattern) == nullptr) std::abort();
    folder_ = pattern;
    std::ofstream(folder_ + "/zone") << kZone;
  }
  ~Signing() override { fs::remove_all(folder_); }

  std::string make(bool is_zsk = false) {
    std::ostringstream path;
    KeyRequest request{.zone = "example.com", .is_zsk = is_zsk, .folder = folder_};
    EXPECT_EQ(make_key(request, {path, err_}), kDone) << err_.str();
    std::string text = path.str();
    text.pop_back();
    return text;
  }
  SignRequest request(std::vector<std::string> keys) {
    SignRequest made;
    made.file = folder_ + "/zone";
    made.keys.keys = std::move(keys);
    return made;
  }

  std::string folder_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(Signing, WritesTheZoneWithTheSoaFirst) {
  EXPECT_EQ(sign_zone_file(request({make(), make(true)}), {out_, err_}), kDone) << err_.str();
  EXPECT_THAT(out_.str(), StartsWith("example.com. 3600 IN SOA "));
  EXPECT_THAT(out_.str(), HasSubstr("DNSKEY 257 3 13 "));
  EXPECT_THAT(out_.str(), HasSubstr("DNSKEY 256 3 13 "));
  EXPECT_THAT(out_.str(), HasSubstr("NSEC ns.example.com. NS SOA RRSIG NSEC DNSKEY"));
  EXPECT_EQ(err_.str(), "");
}

TEST_F(Signing, OfAFileReportsAndLeavesTheSourceAlone) {
  SignRequest wanted = request({make()});
  wanted.out = folder_ + "/signed";
  EXPECT_EQ(sign_zone_file(wanted, {out_, err_}), kDone) << err_.str();
  EXPECT_THAT(out_.str(), StartsWith("example.com.: signed, serial 7, 12 records at 2 names, "
                                     "6 signatures until "));
  wanted.out = wanted.file;
  EXPECT_EQ(sign_zone_file(wanted, {out_, err_}), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr("take its source's place"));
}

TEST_F(Signing, ReplacesNothingButASignedZone) {
  const std::string key = make();
  SignRequest wanted = request({key});
  for (const std::string& other : {key, folder_ + "/included"}) {
    if (other != key) std::ofstream(other) << "www A 192.0.2.1\n";
    const auto bytes = fs::file_size(other);
    wanted.out = other;
    EXPECT_EQ(sign_zone_file(wanted, {out_, err_}), kFailed);
    EXPECT_EQ(fs::file_size(other), bytes) << other;
  }
  EXPECT_THAT(err_.str(), HasSubstr("something else than a zone that was signed here"));
  wanted.out = folder_ + "/signed";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(sign_zone_file(wanted, {out_, err_}), kDone) << err_.str();
}

TEST_F(Signing, WithWrongWordsTouchesNoFile) {
  SignRequest wanted = request({make()});
  wanted.out = folder_ + "/signed";
  wanted.expiration = "yesterday";
  EXPECT_EQ(sign_zone_file(wanted, {out_, err_}), kUsage);
  EXPECT_THAT(err_.str(), HasSubstr("'yesterday' is no time"));
  wanted.expiration.clear();
  wanted.keys.keys.clear();
  wanted.origin = "example.com";
  EXPECT_EQ(sign_zone_file(wanted, {out_, err_}), kUsage);
  wanted.origin.clear();
  EXPECT_EQ(sign_zone_file(wanted, {out_, err_}), kFailed);
  EXPECT_FALSE(fs::exists(wanted.out));
}

TEST_F(Signing, KeysAreShownWithAllTheirRecords) {
  const std::string path = make();
  EXPECT_EQ(show_keys({path}, "", {out_, err_}), kDone);
  for (const char* type : {" IN DNSKEY 257 3 13 ", " IN DS ", " IN CDS ", " IN CDNSKEY 257 3 13 "})
    EXPECT_THAT(out_.str(), HasSubstr(std::string("example.com.") + type));
  EXPECT_EQ(show_keys({path}, "example.net", {out_, err_}), kFailed);
  EXPECT_EQ(print_ds({path}, "", "SHA-1000", {out_, err_}), kUsage);
}

TEST_F(Signing, ANewKeyTakesNoFilesPlace) {
  const KeyRequest elsewhere{.zone = "example.com", .folder = folder_ + "/none"};
  EXPECT_EQ(make_key(elsewhere, {out_, err_}), kFailed);
  EXPECT_THAT(err_.str(), HasSubstr(folder_ + "/none/"));
  const KeyRequest unnamed{.zone = "a..b", .folder = folder_};
  EXPECT_EQ(make_key(unnamed, {out_, err_}), kUsage);
}

TEST_F(Signing, WithNsec3HasItsParametersAndAWarningOfIterations) {
  SignRequest given = request({make()});
  given.is_nsec3 = true;
  given.iterations = 5;
  given.salt = "aB01";
  std::ostringstream out;
  ASSERT_EQ(sign_zone_file(given, {out, err_}), kDone) << err_.str();
  EXPECT_THAT(out.str(), HasSubstr(" NSEC3PARAM 1 0 5 AB01\n"));
  EXPECT_THAT(out.str(), HasSubstr(" NSEC3 1 0 5 AB01 "));
  EXPECT_THAT(err_.str(), HasSubstr("RFC 9276 wants 0"));
  for (const char* salt : {"abc", "xy"}) {
    given.salt = salt;
    EXPECT_EQ(sign_zone_file(given, {out, err_}), kUsage) << salt;
  }
}

}  // namespace sign_command_test
}  // namespace pando::ctl
