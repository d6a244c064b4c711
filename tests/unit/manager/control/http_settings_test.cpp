#include "manager/control/http_settings.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/load.h"
#include "ipc/control_json.h"
#include "ipc/secret_digest.h"

namespace pando::manager {
namespace http_settings_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kRest =
    "store: {path: /dev/shm/s, journal: j}\n"
    "keys: [{name: update, algorithm: hmac-sha256, secret: cGFuZG8=}]\n"
    "remotes: [{name: up, address: [192.0.2.1@53]}]\n";

RuntimePtr runtime_of(const std::string& http) {
  auto loaded = config::load_text(kRest + http, "/etc/pando/pando.yaml");
  EXPECT_TRUE(loaded.ok()) << loaded.error_text();
  auto runtime = std::make_shared<Runtime>();
  runtime->settings = std::move(loaded.settings);
  return runtime;
}

const char* const kTwoKeys =
    "http: {hosts: [Pando.example], keys: [{name: a, secret: a-secret-of-sixteen, role: write,\n"
    "  zones: ['*.example.net', example.com]}, {name: b, secret: b-secret-of-sixteen}]}\n";

TEST(HttpSettings, HaveDigestsInThePlacesOfSecrets) {
  const auto settings = http_settings(runtime_of(kTwoKeys)->settings);
  ASSERT_EQ(settings.keys.size(), 2U);
  EXPECT_EQ(settings.keys[0].name, "a");
  EXPECT_EQ(settings.keys[0].digest, ipc::secret_digest("a-secret-of-sixteen"));
  EXPECT_EQ(settings.keys[0].role, "write");
  EXPECT_THAT(settings.keys[0].zones, ElementsAre("*.example.net.", "example.com."));
  EXPECT_EQ(settings.keys[1].role, "read");
  EXPECT_THAT(settings.hosts, ElementsAre("pando.example"));
  EXPECT_EQ(settings.remotes.at(0).addresses.at(0), "192.0.2.1@53");
  EXPECT_EQ(settings.tsig_keys.at(0).name, "update.");
  const std::string text = nlohmann::json(settings).dump();
  EXPECT_THAT(text, Not(HasSubstr("secret-of")));
  EXPECT_THAT(text, Not(HasSubstr("cGFuZG8")));
}

TEST(HttpSettings, OfTheSameLabelAreNotRepeated) {
  HttpSettings settings;
  ipc::ControlRequest request;
  const auto runtime = runtime_of(kTwoKeys);
  const auto first = settings.answer(runtime, request);
  ASSERT_TRUE(first);
  request.label = first->at("label");
  EXPECT_EQ(settings.answer(runtime, request)->dump(),
            fmt::format(R"({{"label":"{}"}})", request.label));
  EXPECT_EQ(settings.answer(runtime_of(kTwoKeys), request)->size(), 1U)
      << "another object, the same";
  const auto changed = settings.answer(runtime_of("http: {}\n"), request);
  EXPECT_TRUE(changed->at("keys").empty());
  EXPECT_NE(changed->at("label"), request.label);
}

TEST(HttpSettings, AreNotThereWithoutTheirSection) {
  HttpSettings settings;
  const auto answer = settings.answer(runtime_of(""), {});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Errc::kNotFound);
}

}  // namespace http_settings_test
}  // namespace pando::manager
