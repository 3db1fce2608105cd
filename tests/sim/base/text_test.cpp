#include <gtest/gtest.h>

#include "sim/base/hash.hpp"
#include "sim/base/text.hpp"
#include "sim/base/utf8.hpp"

namespace mllmsim {
namespace {

TEST(Text, TrimmedOfBlanks) {
  EXPECT_EQ(trimmed(" \ta b\r"), "a b");
  EXPECT_EQ(trimmed(" \t "), "");
}

TEST(Text, SplitHasOnePartMoreThanSeparators) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string_view>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (std::vector<std::string_view>{""}));
}

TEST(Text, LinesEndEitherWay) {
  std::string_view text = "a\r\n\nb";
  EXPECT_EQ(take_line(text), "a");
  EXPECT_EQ(take_line(text), "");
  EXPECT_EQ(take_line(text), "b");
  EXPECT_TRUE(text.empty());
}

TEST(Text, ANumberIsTheWholeText) {
  EXPECT_EQ(to_number<int>("-12"), -12);
  EXPECT_EQ(to_number<double>("1.5e3"), 1500);
  for (const char* text : {"", "1 ", "1x", "x", "3000000000", "1.5"})
    EXPECT_EQ(to_number<int>(text), std::nullopt) << text;
}

TEST(Text, PrintableHasNoControlCharacters) {
  EXPECT_EQ(printable("Größe 7B \\ ok"), "Größe 7B \\ ok");
  EXPECT_EQ(printable("\x1b[31m\n\x7f"), "\\x1b[31m\\x0a\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");           // C1: some terminals take it for ESC [
  EXPECT_EQ(printable("a\xff\xc3"), "a\\xff\\xc3");         // not UTF-8, and cut off
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");           // ESC in too many bytes
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
  EXPECT_EQ(printable_lines("a\n\tb\n"), "a\n\\x09b\n");
}

TEST(Text, OneOf) {
  EXPECT_EQ(one_of({"a"}), "\"a\"");
  EXPECT_EQ(one_of({"a", "b", "c"}), "\"a\", \"b\" or \"c\"");
}

TEST(EditDistance, CountsInsertionsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("nodes", "nodes"), 0u);
  EXPECT_EQ(edit_distance("node", "nodes"), 1u);
  EXPECT_EQ(edit_distance("modes", "nodes"), 1u);
  EXPECT_EQ(edit_distance("ndoes", "nodes"), 1u);
  EXPECT_EQ(edit_distance("", "nodes"), 5u);
}

TEST(Utf8, IsToldFromOtherBytes) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("a\n\u00e9\u20ac"));
  EXPECT_FALSE(is_utf8("a\xff"));
  EXPECT_FALSE(is_utf8("\xc3"));          // half a character
  EXPECT_FALSE(is_utf8("\xc0\xaf"));      // longer than it must be
  EXPECT_FALSE(is_utf8("\xed\xa0\x80"));  // half a surrogate pair
}

TEST(DidYouMean, NearestName) {
  EXPECT_EQ(did_you_mean("balancd", {"balanced", "baseline"}), "; did you mean \"balanced\"?");
}

TEST(DidYouMean, SaysNothingIfNothingIsNear) {
  EXPECT_EQ(did_you_mean("optimus", {"balanced", "baseline"}), "");
  EXPECT_EQ(did_you_mean("x", {"pp"}), "");
  EXPECT_EQ(did_you_mean("lora", {"norm"}), "");
  EXPECT_EQ(did_you_mean("batch_size", {"patch_size"}), "");  // another thing
  EXPECT_EQ(did_you_mean("decoder", {"encoder"}), "");
  EXPECT_EQ(did_you_mean("expert_model_parallel_size", {"tensor_model_parallel_size"}), "");
  EXPECT_EQ(did_you_mean("min_tokens", {"max_tokens", "mix_tokens"}),
            "; did you mean \"mix_tokens\"?");
}

TEST(Hash, IsFnv1a) {  // test vectors of the FNV authors
  EXPECT_EQ(hash_text(""), "cbf29ce484222325");
  EXPECT_EQ(hash_text("foobar"), "85944171f73967e8");
}

// The first number of the reference implementation's SplitMix64 with seed 0.
TEST(Hash, IsSplitMix64) { EXPECT_EQ(split_mix(kSplitMixStep), 0xe220a8397b1dcdafU); }

}  // namespace
}  // namespace mllmsim
