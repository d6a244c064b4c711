#include "manager/tls/tls_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/unix_time.h"
#include "tests/unit/manager/tls/made_certificates.h"

namespace pando::manager {
namespace tls_files_test {

using ::testing::HasSubstr;
using testing::CertificateFolder;

class TlsFilesTest : public ::testing::Test {
 protected:
  Result<CertificatePair> read(const std::string& certificate, const std::string& key) const {
    return read_pair({folder_.at(certificate), folder_.at(key)}, unix_seconds());
  }
  std::string error_of(const std::string& certificate, const std::string& key) const {
    const auto pair = read(certificate, key);
    EXPECT_FALSE(pair);
    return pair ? "" : pair.error().text;
  }

  CertificateFolder folder_;
};

TEST_F(TlsFilesTest, APairIsRead) {
  folder_.make("a");
  const auto pair = read("a.pem", "a.key");
  ASSERT_TRUE(pair) << pair.error().text;
  EXPECT_EQ(pair->facts.subject, "CN=a.test");
}

TEST_F(TlsFilesTest, CertbotsLinksAreFollowed) {
  folder_.make("archive1");
  std::filesystem::create_symlink("archive1.pem", folder_.at("fullchain.pem"));
  std::filesystem::create_symlink("archive1.key", folder_.at("privkey.pem"));
  EXPECT_TRUE(read("fullchain.pem", "privkey.pem"));
}

TEST_F(TlsFilesTest, EachFaultNamesItsFile) {
  folder_.make("a");
  folder_.make("b");
  folder_.write("empty", "");
  folder_.write("long", std::string(300'000, '#'));
  std::filesystem::create_directory(folder_.at("folder"));
  EXPECT_THAT(error_of("missing.pem", "a.key"), HasSubstr(folder_.at("missing.pem")));
  EXPECT_THAT(error_of("a.pem", "missing.key"), HasSubstr(folder_.at("missing.key")));
  EXPECT_EQ(error_of("empty", "a.key"), folder_.at("empty") + " is empty");
  EXPECT_EQ(error_of("a.pem", "empty"), folder_.at("empty") + " is empty");
  EXPECT_THAT(error_of("long", "a.key"), HasSubstr("long has more than 262144 bytes"));
  EXPECT_THAT(error_of("folder", "a.key"), HasSubstr("folder is not a regular file"));
  EXPECT_EQ(error_of("a.key", "a.key"),
            folder_.at("a.key") + ": there is no certificate in it (PEM)");
  EXPECT_EQ(error_of("a.pem", "b.key"),
            folder_.at("b.key") + ": the private key is not that of the certificate");
}

TEST_F(TlsFilesTest, AKeyThatOthersCanReadIsRefused) {
  folder_.make("a");
  namespace fs = std::filesystem;
  fs::permissions(folder_.at("a.key"), fs::perms(0644));
  EXPECT_THAT(error_of("a.pem", "a.key"), HasSubstr("a.key: chmod o= "));
  fs::permissions(folder_.at("a.key"), fs::perms(0640));
  EXPECT_TRUE(read("a.pem", "a.key"));
}

TEST_F(TlsFilesTest, AMarkChangesWithTheFile) {
  folder_.write("f", "one");
  const FileMark first = mark_of(folder_.at("f"));
  EXPECT_EQ(mark_of(folder_.at("f")), first);
  EXPECT_EQ(mark_of(folder_.at("missing")), FileMark());
  folder_.write("g", "two");
  std::filesystem::rename(folder_.at("g"), folder_.at("f"));
  EXPECT_FALSE(mark_of(folder_.at("f")) == first) << "another file of the same size";
  std::filesystem::create_symlink("f", folder_.at("link"));
  EXPECT_EQ(mark_of(folder_.at("link")), mark_of(folder_.at("f")));
  EXPECT_EQ(marks_of({folder_.at("link"), folder_.at("missing")}).size(), 2U);
}

TEST_F(TlsFilesTest, AuthoritiesAreTheSystemsWithoutAFile) {
  folder_.make("ca");
  const auto own = read_authorities(folder_.at("ca.pem"));
  ASSERT_TRUE(own);
  EXPECT_EQ(std::string(own->begin(), own->end()), folder_.read("ca.pem"));
  const auto key = read_authorities(folder_.at("ca.key"));
  ASSERT_FALSE(key);
  EXPECT_THAT(key.error().text, HasSubstr(folder_.at("ca.key")));
  if (!std::filesystem::exists(system_authorities())) GTEST_SKIP() << "no authorities here";
  EXPECT_TRUE(read_authorities(""));
}

}  // namespace tls_files_test
}  // namespace pando::manager
