#include "http/live_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "ipc/secret_digest.h"

namespace pando::http {
namespace live_settings_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Request with_key(std::string secret) {
  Request request;
  request.api_key = std::move(secret);
  return request;
}

ipc::HttpSettingsResult with_keys(std::string label, std::vector<ipc::HttpKeyRow> keys) {
  ipc::HttpSettingsResult settings;
  settings.label = std::move(label);
  settings.keys = std::move(keys);
  return settings;
}

ipc::HttpKeyRow key_row(std::string name, std::string role, std::vector<std::string> zones = {}) {
  return {name, ipc::secret_digest(name + "-secret"), std::move(role), std::move(zones)};
}

/// Settings of a start with one key, and a manager that answers what a test gives it.
class Live : public ::testing::Test {
 protected:
  [[nodiscard]] static ServedSettings at_start() {
    return {Access(known_keys({{"first", "first-secret", Role::kRead, {}}})), {}};
  }
  LiveSettings make(bool needs_keys = false, ServedSettings served = at_start()) {
    return {std::move(served), needs_keys, [this](const std::string& label) {
              labels_.push_back(label);
              if (pause_.count() != 0) std::this_thread::sleep_for(pause_);
              return answer_;
            }};
  }
  static const AccessKey* key(const std::shared_ptr<const ServedSettings>& settings,
                              const std::string& name) {
    return settings->access.key_of(with_key(name + "-secret"));
  }

  Result<ipc::HttpSettingsResult> answer_ = fail(Errc::kIo, "no manager");
  std::chrono::milliseconds pause_{0};
  std::vector<std::string> labels_;
};

TEST_F(Live, WithoutAManagerTheSettingsOfTheStartCount) {
  LiveSettings live = make();
  EXPECT_NE(key(live.last(), "first"), nullptr);
  EXPECT_NE(key(live.now(), "first"), nullptr);
  EXPECT_EQ(key(live.now(), "second"), nullptr);
  EXPECT_THAT(labels_, ElementsAre("", "")) << "a manager may come at any time";
}

TEST_F(Live, TheManagersKeysRolesAndZonesCountFromTheNextRequestOn) {
  LiveSettings live = make();
  answer_ = with_keys("1", {key_row("second", "write", {"example.com.", "*.example.net."})});
  const auto settings = live.now();
  EXPECT_EQ(key(settings, "first"), nullptr) << "it is gone";
  const AccessKey* second = key(settings, "second");
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->name, "second");
  EXPECT_EQ(second->role, Role::kWrite);
  EXPECT_TRUE(second->sees(dns::Name::from_text("a.example.net.").value()));
  EXPECT_FALSE(second->sees(dns::Name::from_text("example.net.").value()));
  EXPECT_EQ(live.last(), settings);
  answer_ = with_keys("2", {key_row("second", "admin")});
  EXPECT_EQ(key(live.now(), "second")->role, Role::kAdmin);
}

TEST_F(Live, NothingIsMadeAnewWhileTheLabelIsTheSame) {
  LiveSettings live = make();
  answer_ = with_keys("1", {key_row("second", "read")});
  const auto settings = live.now();
  answer_ = with_keys("1", {});
  EXPECT_EQ(live.now(), settings);
  EXPECT_THAT(labels_, ElementsAre("", "1"));
  answer_ = fail(Errc::kIo, "the manager restarts");
  EXPECT_EQ(live.now(), settings);
}

TEST_F(Live, OfAManagerWithOtherWordsNothingIsTaken) {
  LiveSettings live = make();
  answer_ = with_keys("1", {key_row("second", "owner")});
  EXPECT_NE(key(live.now(), "first"), nullptr);
  answer_ = with_keys("2", {key_row("second", "read", {".."})});
  EXPECT_NE(key(live.now(), "first"), nullptr);
  answer_ = with_keys("3", {key_row("second", "read")});
  EXPECT_NE(key(live.now(), "second"), nullptr);
}

TEST_F(Live, AManagerThatHangsIsLeftAloneForAWhile) {
  LiveSettings live = make();
  pause_ = LiveSettings::kSlow;
  live.now();
  live.now();
  live.now();
  EXPECT_EQ(labels_.size(), 1U);
}

/// Keys that are all taken away, while other hosts reach an address that was opened with keys.
TEST_F(Live, WithoutAKeyNobodyComesInFromOtherHosts) {
  answer_ = with_keys("1", {});
  LiveSettings guarded = make(/*needs_keys=*/true);
  EXPECT_EQ(key(guarded.now(), "first"), nullptr);
  EXPECT_EQ(guarded.now()->access.key_of({}), nullptr);
  LiveSettings open = make(/*needs_keys=*/false);
  EXPECT_NE(open.now()->access.key_of({}), nullptr);
}

TEST_F(Live, RemotesKeysAndTheTemplateFollow) {
  ipc::HttpSettingsResult settings = with_keys("1", {});
  settings.hosts = {"pando.example"};
  settings.template_name = "customers";
  settings.remotes = {{"first", {"192.0.2.1@53", "2001:db8::1@53"}}};
  settings.tsig_keys = {{"key.", "hmac-sha256"}};
  const auto served = served_settings(settings);
  ASSERT_TRUE(served) << served.error().text;
  EXPECT_EQ(served->known.zone_template, "customers");
  ASSERT_EQ(served->known.remotes.size(), 1U);
  EXPECT_EQ(served->known.remotes[0].address.size(), 2U);
  EXPECT_EQ(served->known.keys.at(0).algorithm, "hmac-sha256");
  Request request;
  request.host = "pando.example";
  EXPECT_TRUE(served->access.is_addressed_by(request));
  settings.remotes = {{"first", {"nowhere"}}};
  EXPECT_FALSE(served_settings(settings));
}

}  // namespace live_settings_test
}  // namespace pando::http
