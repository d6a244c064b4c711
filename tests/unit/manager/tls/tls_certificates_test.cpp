#include "manager/tls/tls_certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/thread_pool.hpp>

#include "base/unix_time.h"
#include "config/load.h"
#include "tests/unit/manager/io/fake_disk.h"
#include "tests/unit/manager/run_until.h"
#include "tests/unit/manager/tls/made_certificates.h"

namespace pando::manager {
namespace tls_certificates_test {

using ::testing::HasSubstr;
using testing::CertificateFolder;

constexpr std::int64_t kDay = 86'400;

std::string sealed_text(const std::shared_ptr<const Fd>& file) {
  if (!file) return {};
  const auto octets = ipc::read_tls_file(file->get());
  EXPECT_TRUE(octets);
  return octets ? std::string(octets->begin(), octets->end()) : std::string();
}

class Certificates : public ::testing::Test {
 protected:
  Certificates() {
    certificates_.on_change([this] { ++changes_; });
  }
  ~Certificates() override { pool_.join(); }

  /// Server and remotes as the configuration would have them; waits for the first look.
  void configure(config::Settings settings) {
    settings.store.journal = "/var/j";
    certificates_.configure(std::make_shared<const config::Settings>(std::move(settings)));
    settle();
  }
  config::Settings serving(const std::string& name) const {
    config::Settings settings;
    settings.server.listen_tls = {*Endpoint::from_text("127.0.0.1@853")};
    if (!name.empty())
      settings.server.tls = config::TlsPair{folder_.at(name + ".pem"), folder_.at(name + ".key")};
    return settings;
  }
  void look() {
    certificates_.look();
    settle();
  }
  /// Runs until the looks so far have ended: the pool has one thread, so their order stays.
  void settle() {
    bool done = false;
    asio::post(pool_, [&] { asio::post(io_, [&] { done = true; }); });
    EXPECT_TRUE(testing::run_until(io_, [&] { return done; }));
  }
  /// The pair has another content, as of a program that renames files into place.
  void replace(const std::string& from, const std::string& to) const {
    folder_.write("new", folder_.read(from));
    std::filesystem::rename(folder_.at("new"), folder_.at(to));
  }
  std::string problem() const { return certificates_.status().certificate.problem; }
  std::string subject() const { return certificates_.status().certificate.subject; }

  CertificateFolder folder_;
  testing::FakeDisk disk_;
  asio::io_context io_{1};
  asio::thread_pool pool_{1};
  std::int64_t later_ = 0;  ///< seconds by which our clock is ahead of that of openssl(1)
  int changes_ = 0;
  TlsCertificates certificates_{
      io_, pool_, disk_, {[this] { return unix_seconds() + static_cast<std::uint64_t>(later_); },
                            std::chrono::hours(1)}};
};

TEST_F(Certificates, APairOfFilesIsSealed) {
  folder_.make("a");
  configure(serving("a"));
  EXPECT_EQ(changes_, 1);
  EXPECT_EQ(subject(), "CN=a.test");
  EXPECT_THAT(sealed_text(certificates_.server_pair()), HasSubstr(folder_.read("a.pem")));
  const auto before = certificates_.server_pair();
  look();
  EXPECT_EQ(certificates_.server_pair(), before) << "nothing has changed";
  EXPECT_EQ(changes_, 1);
}

TEST_F(Certificates, WithoutAnAddressNothingIsRead) {
  configure({});
  EXPECT_EQ(certificates_.server_pair(), nullptr);
  EXPECT_FALSE(certificates_.status().served);
  EXPECT_TRUE(disk_.calls.empty());
}

TEST_F(Certificates, ChangesInEitherOrderKeepTheOldPairUntilBothFit) {
  folder_.make("a");
  folder_.make("b");
  folder_.make("c");
  configure(serving("a"));
  for (const auto& [first, second, name] :
       {std::tuple("pem", "key", "b"), std::tuple("key", "pem", "c")}) {
    const auto before = certificates_.server_pair();
    replace(std::string(name) + "." + first, std::string("a.") + first);
    look();
    EXPECT_EQ(certificates_.server_pair(), before);
    EXPECT_EQ(problem(),
              folder_.at("a.key") + ": the private key is not that of the certificate");
    replace(std::string(name) + "." + second, std::string("a.") + second);
    look();
    EXPECT_EQ(problem(), "");
    EXPECT_EQ(subject(), "CN=" + std::string(name) + ".test");
    EXPECT_NE(certificates_.server_pair(), before);
  }
  EXPECT_EQ(changes_, 3);
}

TEST_F(Certificates, WhatCannotBeUsedLeavesWhatWasInUse) {
  folder_.make("a");
  configure(serving("a"));
  const auto old = certificates_.server_pair();
  const std::string key = folder_.read("a.key");
  std::filesystem::remove(folder_.at("a.key"));
  look();
  EXPECT_THAT(problem(), HasSubstr(folder_.at("a.key")));
  folder_.write("a.key", "");
  look();
  EXPECT_THAT(problem(), HasSubstr("is empty"));
  EXPECT_EQ(certificates_.server_pair(), old);
  EXPECT_EQ(changes_, 1);
  folder_.write("a.key", key);
  look();
  EXPECT_EQ(problem(), "");
}

TEST_F(Certificates, AFirstStartWithoutAUsablePairSaysWhy) {
  folder_.make("a", 1);
  later_ = 2 * kDay;
  configure(serving("a"));
  EXPECT_EQ(certificates_.server_pair(), nullptr);
  EXPECT_THAT(problem(), HasSubstr("a.pem: the certificate has expired at"));
  EXPECT_EQ(certificates_.status().certificate.pin, "");
}

TEST_F(Certificates, ACertificateOfTheFutureIsTakenWhenItsTimeHasCome) {
  folder_.make("a");
  later_ = -kDay;
  configure(serving("a"));
  EXPECT_THAT(problem(), HasSubstr("a.pem: the certificate is not valid before"));
  later_ = 0;
  look();
  EXPECT_EQ(problem(), "");
  EXPECT_NE(certificates_.server_pair(), nullptr);
}

TEST_F(Certificates, WithoutFilesTheServerHasKeysOfItsOwn) {
  configure(serving(""));
  const ipc::TlsStatusResult before = certificates_.status();
  EXPECT_EQ(before.certificate.file, "");
  EXPECT_NE(before.next_pin, "");
  std::optional<Status> rolled;
  certificates_.roll([&](const Status& status) { rolled = status; });
  EXPECT_TRUE(testing::run_until(io_, [&] { return rolled.has_value(); }));
  ASSERT_TRUE(*rolled);
  const ipc::TlsStatusResult after = certificates_.status();
  EXPECT_EQ(after.certificate.pin, before.next_pin);
  EXPECT_NE(after.next_pin, before.next_pin);
  EXPECT_EQ(changes_, 2);
}

TEST_F(Certificates, KeysOfFilesAreNotRolled) {
  folder_.make("a");
  std::optional<Status> rolled;
  const auto roll = [&] { certificates_.roll([&](const Status& status) { rolled = status; }); };
  roll();
  EXPECT_FALSE(*rolled) << "TLS is not served";
  configure(serving("a"));
  rolled.reset();
  roll();
  ASSERT_TRUE(rolled && !*rolled);
  EXPECT_THAT(rolled->error().text, HasSubstr(folder_.at("a.pem")));
}

TEST_F(Certificates, DemandsAreThoseOfRemotesThatRulesName) {
  folder_.make("ca");
  const config::LoadResult loaded = config::load_text(
      fmt::format(
          "remotes: [{{name: a, address: [192.0.2.1], tls: {{hostname: a.test, ca: {}}}}},\n"
          "  {{name: b, address: [192.0.2.2], tls: {{pins: "
          "[AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=]}}}},\n"
          "  {{name: c, address: [192.0.2.3], tls: {{hostname: c.test, ca: {}}}}},\n"
          "  {{name: unused, address: [192.0.2.4], tls: {{hostname: d.test}}}}]\n"
          "zones: [{{name: z, file: f, allow-transfer: [{{tls: a}}, {{tls: c}}],\n"
          "         allow-update: {{tls: any}}}},\n"
          "  {{name: y, file: g, allow-query: [{{tls: b, deny: true}}]}}]\n",
          folder_.at("ca.pem"), folder_.at("missing.pem")),
      "/etc/p.yaml");
  ASSERT_TRUE(loaded.ok()) << loaded.error_text();
  configure(loaded.settings);
  auto demands = certificates_.demands();
  ASSERT_EQ(demands.size(), 2U) << "authorities of c are not there";
  EXPECT_EQ(demands[0].remote, "a");
  EXPECT_EQ(demands[0].hostname, "a.test");
  EXPECT_EQ(std::string(demands[0].ca.begin(), demands[0].ca.end()), folder_.read("ca.pem"));
  EXPECT_EQ(demands[1].remote, "b");
  EXPECT_TRUE(demands[1].ca.empty());
  EXPECT_EQ(demands[1].pins.size(), 1U);
  EXPECT_THAT(certificates_.status().remotes[2].problem, HasSubstr("missing.pem"));

  // Authorities that cannot be read leave those of before.
  const std::string ca = folder_.read("ca.pem");
  folder_.write("ca.pem", "nothing");
  look();
  EXPECT_EQ(changes_, 1);
  EXPECT_THAT(certificates_.status().remotes[0].problem, HasSubstr("there is no certificate"));
  demands = certificates_.demands();
  EXPECT_EQ(std::string(demands[0].ca.begin(), demands[0].ca.end()), ca);
}

TEST_F(Certificates, ARemoteMayBeShownACertificateOfItsOwn) {
  folder_.make("server");
  folder_.make("client");
  config::Settings settings = serving("server");
  config::Remote remote{"r", {*Endpoint::from_text("192.0.2.1@853")}, {}, config::RemoteTls{}};
  settings.remotes.push_back(remote);
  remote.name = "own";
  remote.tls->certificate = folder_.at("client.pem");
  remote.tls->key = folder_.at("client.key");
  settings.remotes.push_back(remote);
  configure(std::move(settings));
  EXPECT_EQ(certificates_.pair_for("r"), certificates_.server_pair());
  EXPECT_THAT(sealed_text(certificates_.pair_for("own")), HasSubstr(folder_.read("client.pem")));
  EXPECT_EQ(certificates_.status().remotes[1].certificate.subject, "CN=client.test");
}

}  // namespace tls_certificates_test
}  // namespace pando::manager
