#include "sim/base/base64.hpp"

#include <gtest/gtest.h>

namespace mllmsim {
namespace {

TEST(Base64, TestVectorsOfRfc4648) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

TEST(Base64, BytesAbove127) { EXPECT_EQ(base64("\xff\xfe\xfd"), "//79"); }

}  // namespace
}  // namespace mllmsim
