#include "ipc/secret_digest.h"

#include <gtest/gtest.h>

namespace pando::ipc {
namespace secret_digest_test {

TEST(SecretDigest, IsAnHmacOfAFixedTextUnderTheSecret) {
  // printf http.keys | openssl dgst -sha256 -hmac a-secret-of-sixteen
  EXPECT_EQ(secret_digest("a-secret-of-sixteen"),
            "6a9b852696b7034ef0277fbe1ae6311bb88a451b5dc541ad40a7c610f71f2c80");
}

TEST(SecretDigest, DependsOnEachOctet) {
  EXPECT_NE(secret_digest("secret-a"), secret_digest("secret-b"));
  EXPECT_EQ(secret_digest(std::string(10'000, 'a')).size(), 64U) << "a client shows any text";
}

}  // namespace secret_digest_test
}  // namespace pando::ipc
