#include "manager/io/session_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "config/files.h"

namespace pando::manager {
namespace session_key_test {

using ::testing::HasSubstr;

class SessionKey : public ::testing::Test {
 protected:
  SessionKey() {
    char pattern[] = "/tmp/pando-session-XXXXXX";
    if (::mkdtemp(pattern) == nullptr) std::abort();
    folder_ = pattern;
    path_ = folder_ + "/made/session.key";
  }
  ~SessionKey() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] config::Settings settings() const {
    config::Settings settings;
    config::Key key;
    key.name = *dns::Name::from_text("local-ddns.");
    key.session_file = path_;
    settings.keys = {key};
    return settings;
  }
  [[nodiscard]] std::string text() const { return config::read_regular_file(path_).value(); }
  void write(const std::string& text) const { std::ofstream(path_, std::ios::trunc) << text; }

  std::string folder_;
  std::string path_;
};

TEST_F(SessionKey, IsMadeOnceAndReadAsItWasWritten) {
  const config::Settings settings = this->settings();
  const auto made = make_session_keys(settings, std::nullopt);
  ASSERT_TRUE(made) << made.error().text;
  EXPECT_TRUE(*made);
  EXPECT_THAT(text(), HasSubstr("key \"local-ddns\" {\n\talgorithm hmac-sha256;\n"));
  struct stat file{};
  ASSERT_EQ(::stat(path_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 07777U, 0600U);
  const Bytes secret = session_secret(settings.keys[0]);
  EXPECT_EQ(secret.size(), 32U);
  EXPECT_EQ(session_secret(settings.keys[0]), secret);
  const auto again = make_session_keys(settings, std::nullopt);
  ASSERT_TRUE(again);
  EXPECT_FALSE(*again);
  EXPECT_EQ(session_secret(settings.keys[0]), secret);
}

TEST_F(SessionKey, IsMadeAnewWhereTheFileHasNoneThatIsLongEnough) {
  const config::Settings settings = this->settings();
  ASSERT_TRUE(make_session_keys(settings, std::nullopt));
  for (const char* bad : {"", "secret", "secret \"", "secret \"\";", "secret \"QUJD\";",
                          "secret \"no base64!\";"}) {
    write(bad);
    const auto made = make_session_keys(settings, std::nullopt);
    ASSERT_TRUE(made) << made.error().text;
    EXPECT_TRUE(*made) << bad;
    EXPECT_EQ(session_secret(settings.keys[0]).size(), 32U);
  }
}

TEST_F(SessionKey, WithoutAFileIsASecretThatNobodyHas) {
  const config::Settings settings = this->settings();
  const Bytes one = session_secret(settings.keys[0]);
  EXPECT_EQ(one.size(), 32U);
  EXPECT_NE(session_secret(settings.keys[0]), one);
}

TEST_F(SessionKey, IsRefusedBehindALinkOrInAFolderOfAll) {
  std::filesystem::create_directory(folder_ + "/made");
  std::filesystem::create_symlink(folder_ + "/target", path_);
  EXPECT_FALSE(make_session_keys(settings(), std::nullopt));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/target"));
  std::filesystem::remove(path_);
  ASSERT_EQ(::chmod((folder_ + "/made").c_str(), 0777), 0);
  const auto refused = make_session_keys(settings(), std::nullopt);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text, HasSubstr("key local-ddns."));
}

TEST_F(SessionKey, KeysOfTheConfigurationAreLeftAlone) {
  config::Settings settings;
  config::Key key;
  key.secret = {1, 2, 3};
  settings.keys = {key};
  const auto made = make_session_keys(settings, std::nullopt);
  ASSERT_TRUE(made);
  EXPECT_FALSE(*made);
}

}  // namespace session_key_test
}  // namespace pando::manager
