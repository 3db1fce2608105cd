// The files that come with the program: all of them read, and say what their names promise.
#include <gtest/gtest.h>

#include <cstdlib>

#include "scenarios/files/shipped_files.hpp"
#include "scenarios/tree/toml_parse.hpp"
#include "sim/base/data_directory.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"
#include "tests/scenarios/support.hpp"

namespace mllmsim::test {
using namespace data;
using namespace scenarios;
namespace {

TEST(Shipped, EveryFileHasADescription) {
  for (const auto& list : {shipped_models(), shipped_encoders(), shipped_clusters(),
                           shipped_software(), shipped_runs(), shipped_published()}) {
    EXPECT_FALSE(list.empty());
    for (const ShippedFile& file : list) EXPECT_NE(file.description, "") << file.path;
  }
}

TEST(Shipped, EveryRunReads) {
  for (const ShippedFile& file : shipped_runs())
    EXPECT_NO_THROW(read_scenario(file.path)) << file.path;
}

TEST(Shipped, TheReadmesExampleReads) {
  const std::string readme = read_file(data_directory() / "scenarios" / "README.md", kSmallFile);
  const std::size_t start = readme.find("```toml\n") + 8;
  const std::string example = readme.substr(start, readme.find("```", start) - start);
  EXPECT_EQ(problems_in(example), "");
}

TEST(Shipped, EveryModelReads) {
  for (const ShippedFile& file : shipped_models())
    EXPECT_NO_THROW(read_model_file(file.name)) << file.path;
}

TEST(Shipped, EncodersCannotBeTrainedAlone) {
  for (const ShippedFile& file : shipped_encoders())
    EXPECT_THROW(read_model_file(file.name), UserError) << file.path;
}

double billions(const std::string& model) {
  return static_cast<double>(parameters(read_model_file(model))) / 1e9;
}

// Published parameter counts.
TEST(Shipped, LlmsHaveThePublishedSizes) {
  EXPECT_NEAR(billions("llama-3-8b"), 8.03, 0.01);
  EXPECT_NEAR(billions("llama-3-70b"), 70.55, 0.05);
  EXPECT_NEAR(billions("llama-2-70b"), 68.98, 0.05);
  EXPECT_NEAR(billions("yi-34b"), 34.39, 0.05);
  EXPECT_NEAR(billions("internlm2-20b"), 19.86, 0.05);
  EXPECT_NEAR(billions("internlm2.5-7b"), 7.74, 0.05);
  EXPECT_NEAR(billions("qwen1.5-110b"), 111.2, 0.2);
  EXPECT_NEAR(billions("vicuna-7b"), 6.74, 0.01);
  EXPECT_NEAR(billions("vicuna-13b"), 13.02, 0.01);
  EXPECT_NEAR(billions("gpt3-175b"), 174.6, 0.1);
}

double encoder_billions(const std::string& encoder) {
  const Directory directory;
  const auto file = directory.write("m.toml", "llm = 'llama-3-8b'\nencoders = [{ base = '" +
                                                  encoder + "', projector = [4096, 4096] }]");
  const Model model = read_model_file(file.string());
  double n = 0;
  for (const Layer& layer : layers_of(model))
    if (!is_llm(model, layer) && layer.kind != LayerKind::projector)
      n += static_cast<double>(parameters(model, layer));
  return n / 1e9;
}

TEST(Shipped, EncodersHaveThePublishedSizes) {
  EXPECT_NEAR(encoder_billions("internvit-6b-448"), 5.54, 0.05);
  EXPECT_NEAR(encoder_billions("clip-vit-l-14-336"), 0.303, 0.002);
  EXPECT_NEAR(encoder_billions("eva-clip-1b"), 1.01, 0.01);
  EXPECT_NEAR(encoder_billions("eva-clip-4b"), 4.35, 0.1);
  EXPECT_NEAR(encoder_billions("eva-clip-8b"), 7.5, 0.1);
  EXPECT_NEAR(encoder_billions("eva-clip-18b"), 17.5, 0.2);
  EXPECT_NEAR(encoder_billions("vit-22b"), 21.7, 0.1);
}

TEST(Shipped, InternVlProjector) {
  const Encoder e = read_model_file("internvl-6b-20b").encoders.at(0);
  EXPECT_EQ(e.tokens_per_tile, 1025);
  EXPECT_EQ(e.output_tokens_per_tile, 256);
  EXPECT_EQ(e.projector_sizes, (std::vector<std::int64_t>{12800, 6144, 6144}));
}

TEST(Shipped, LlavaHas576TokensATile) {
  const Encoder e = read_model_file("llava-1.5-13b").encoders.at(0);
  EXPECT_EQ(e.output_tokens_per_tile, 576);
  EXPECT_EQ(e.projector_sizes, (std::vector<std::int64_t>{1024, 5120, 5120}));
}

TEST(Shipped, DataDirectoryFromTheEnvironment) {
  const Directory directory;
  setenv("MLLMSIM_DATA", directory.path().c_str(), 1);
  const auto found = data_directory();
  const auto models = shipped_models();
  unsetenv("MLLMSIM_DATA");
  EXPECT_EQ(found, directory.path());
  EXPECT_TRUE(models.empty());
}

}  // namespace
}  // namespace mllmsim::test
