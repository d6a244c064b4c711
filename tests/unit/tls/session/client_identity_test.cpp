#include "tls/session/client_identity.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>

#include "tests/unit/manager/tls/made_certificates.h"

namespace pando::tls {
namespace client_identity_test {

using ipc::TlsDemand;

CertificatePointer read(const std::string& pem) {
  const BioPointer bio(::BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return CertificatePointer(::PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
}

Bytes octets_of(const std::string& text) { return {text.begin(), text.end()}; }

/// An authority, and a certificate of it for ns2.test.
class ClientIdentity : public ::testing::Test {
 protected:
  ClientIdentity() {
    folder_.make("ca");
    folder_.write("san", "subjectAltName=DNS:ns2.test\n");
    folder_.run("req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout two.key "
                "-out two.csr -subj /CN=two.test");
    folder_.run("x509 -req -in two.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 "
                "-extfile san -out two.pem");
    client_ = read(folder_.read("two.pem"));
  }
  [[nodiscard]] TlsDemand demand(const std::string& hostname, const std::vector<Bytes>& pins) const {
    TlsDemand made{"second"};
    made.hostname = hostname;
    if (!hostname.empty()) made.ca = octets_of(folder_.read("ca.pem"));
    made.pins = pins;
    return made;
  }
  [[nodiscard]] ClientIdentities::Proof prove(const std::vector<TlsDemand>& demands) const {
    auto identities = ClientIdentities::of(demands);
    EXPECT_TRUE(identities);
    return identities->prove(client_.get(), nullptr);
  }

  manager::testing::CertificateFolder folder_;
  CertificatePointer client_;
};

TEST_F(ClientIdentity, IsProvedByNameAndAuthority) {
  EXPECT_EQ(prove({demand("ns2.test", {})}).remotes, std::vector<std::string>{"second"});
}

TEST_F(ClientIdentity, IsNotProvedByAnotherNameNorByTheSubject) {
  EXPECT_TRUE(prove({demand("ns3.test", {})}).remotes.empty());
  const auto proof = prove({demand("two.test", {})});
  EXPECT_TRUE(proof.remotes.empty()) << "RFC 8310: a name in the subject is none";
  EXPECT_FALSE(proof.fault.empty());
}

TEST_F(ClientIdentity, IsNotProvedByAnotherAuthority) {
  folder_.make("other");
  TlsDemand other = demand("ns2.test", {});
  other.ca = octets_of(folder_.read("other.pem"));
  EXPECT_TRUE(prove({other}).remotes.empty());
}

TEST_F(ClientIdentity, IsProvedByOneOfThePins) {
  const Bytes pin = pin_of(client_.get());
  ASSERT_EQ(pin.size(), 32U);
  EXPECT_EQ(prove({demand("", {Bytes(32, 1), pin})}).remotes, std::vector<std::string>{"second"});
  EXPECT_EQ(prove({demand("", {Bytes(32, 1)})}).fault, "its public key is not pinned");
}

TEST_F(ClientIdentity, NeedsNameAndPinIfBothAreDemanded) {
  const Bytes pin = pin_of(client_.get());
  EXPECT_EQ(prove({demand("ns2.test", {pin})}).remotes.size(), 1U);
  EXPECT_TRUE(prove({demand("ns2.test", {Bytes(32, 1)})}).remotes.empty());
  EXPECT_TRUE(prove({demand("ns3.test", {pin})}).remotes.empty());
}

TEST_F(ClientIdentity, IsNobodysWithoutADemand) {
  EXPECT_TRUE(prove({demand("", {})}).remotes.empty());
}

TEST_F(ClientIdentity, MayBeThatOfSeveralRemotes) {
  TlsDemand third = demand("", {pin_of(client_.get())});
  third.remote = "third";
  const auto proof = prove({demand("ns2.test", {}), third, demand("ns3.test", {})});
  EXPECT_EQ(proof.remotes, (std::vector<std::string>{"second", "third"}));
  EXPECT_TRUE(proof.fault.empty());
}

TEST_F(ClientIdentity, AuthoritiesThatCannotBeReadAreAnError) {
  TlsDemand bad = demand("ns2.test", {});
  bad.ca = octets_of("no certificate");
  const auto identities = ClientIdentities::of({bad});
  ASSERT_FALSE(identities);
  EXPECT_NE(identities.error().text.find("second"), std::string::npos);
}

}  // namespace client_identity_test
}  // namespace pando::tls
