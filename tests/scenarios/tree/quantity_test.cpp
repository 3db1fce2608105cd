#include <gtest/gtest.h>

#include "scenarios/tree/quantity.hpp"

namespace mllmsim {
using namespace scenarios;
namespace {

double value(std::string_view text, const Dimension& dimension) {
  const ParsedQuantity parsed = parse_quantity(text, dimension);
  EXPECT_EQ(parsed.problem, "");
  return parsed.value;
}

TEST(Quantity, BitsAreEighthsOfBytes) {
  EXPECT_DOUBLE_EQ(value("200 Gb/s", kBandwidth), 25e9);
  EXPECT_DOUBLE_EQ(value("100 GB/s", kBandwidth), 100e9);
}

TEST(Quantity, BinaryAndDecimalPrefixesDiffer) {
  EXPECT_DOUBLE_EQ(value("80 GiB", kMemorySize), 80. * 1024 * 1024 * 1024);
  EXPECT_DOUBLE_EQ(value("80 GB", kMemorySize), 80e9);
}

TEST(Quantity, DurationsAreInSeconds) {
  EXPECT_DOUBLE_EQ(value("3 us", kDuration), 3e-6);
  EXPECT_DOUBLE_EQ(value("5 ms", kDuration), 5e-3);
  EXPECT_DOUBLE_EQ(value("1.5 s", kDuration), 1.5);
}

TEST(Quantity, ComputeRates) { EXPECT_DOUBLE_EQ(value("312 TFLOP/s", kComputeRate), 312e12); }

TEST(Quantity, SpacesDoNotMatter) {
  EXPECT_DOUBLE_EQ(value("  80GiB ", kMemorySize), value("80 GiB", kMemorySize));
}

std::string problem(std::string_view text, const Dimension& dimension) {
  return parse_quantity(text, dimension).problem;
}

TEST(Quantity, UnitOfAnotherDimension) {
  EXPECT_EQ(problem("80 GiB", kBandwidth),
            R"(expected a bandwidth such as "200 Gb/s", found "80 GiB", which is a memory size)");
}

TEST(Quantity, WrongCaseIsNotGuessed) {
  EXPECT_EQ(problem("200 gb/s", kBandwidth),
            R"(expected a bandwidth such as "200 Gb/s", found "200 gb/s", whose unit is unknown; )"
            R"(did you mean "Gb/s" or "GB/s"?)");
}

TEST(Quantity, NearUnitIsSuggested) {
  EXPECT_EQ(problem("200 Gbps", kBandwidth),
            R"(expected a bandwidth such as "200 Gb/s", found "200 Gbps", whose unit is unknown; )"
            R"(did you mean "Gb/s"?)");
}

TEST(Quantity, MissingUnit) {
  EXPECT_EQ(problem("80", kMemorySize),
            R"(expected a memory size such as "80 GiB", found "80", without a unit)");
}

TEST(Quantity, NotANumber) {
  for (const char* text : {"", "GiB", "inf GiB", "nan GiB", "1e999 GiB", "--1 GiB", "1e308 TiB"})
    EXPECT_NE(problem(text, kMemorySize), "") << text;
}

}  // namespace
}  // namespace mllmsim
