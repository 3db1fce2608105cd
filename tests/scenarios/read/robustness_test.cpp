// Whatever a file holds, reading it gives a scenario or a UserError. Shipped files are mutated:
// bytes changed, lines dropped, doubled and swapped, values replaced by unpleasant ones.
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "scenarios/files/shipped_files.hpp"
#include "scenarios/tree/toml_parse.hpp"
#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"
#include "tests/scenarios/support.hpp"

namespace mllmsim::test {
using namespace data;
using namespace scenarios;
namespace {

using Random = std::mt19937;

std::size_t below(Random& random, std::size_t n) { return random() % n; }

const char* const kUnpleasant[] = {"0",     "-1",         "9223372036854775807",
                                   "1e308", "nan",        "inf",
                                   "\"\"",  "[]",         "{}",
                                   "true",  "[[1]]",      "\"1e300 GB\"",
                                   "\"/\"", "\"..\"",     "\"-5 s\"",
                                   "[{}]",  "2024-01-01", "\"\\u0000\"",
                                   "1",     "7"};

std::string mutated(std::string text, Random& random) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  const std::size_t changes = 1 + below(random, 3);
  for (std::size_t i = 0; i < changes && !lines.empty(); ++i) {
    const std::size_t at = below(random, lines.size());
    std::string& line = lines[at];
    switch (below(random, 6)) {
      case 0:
        lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 1:
        lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at),
                     lines[below(random, lines.size())]);
        break;
      case 2:
        std::swap(line, lines[below(random, lines.size())]);
        break;
      case 3:
        if (!line.empty()) line[below(random, line.size())] = static_cast<char>(random() % 256);
        break;
      default:
        if (const auto equals = line.find('='); equals != std::string::npos)
          line =
              line.substr(0, equals + 1) + " " + kUnpleasant[below(random, std::size(kUnpleasant))];
    }
  }
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

void expect_only_user_errors(const std::string& text,
                             const std::vector<std::string>& overrides = {}) {
  try {
    const Scenario s = read_text_scenario(text, overrides);
    EXPECT_GT(s.job.parallelism.micro_batches(), 0) << text;
    EXPECT_EQ(s.job.parallelism.world_size(), s.job.cluster.gpus()) << text;
  } catch (const UserError& e) {
    EXPECT_FALSE(e.problems().empty());
  } catch (const std::exception& e) {
    ADD_FAILURE() << e.what() << " for\n" << text;
  }
}

TEST(Robustness, MutatedRuns) {
  Random random(1);
  std::vector<std::string> texts = {kSmallRun};
  for (const ShippedFile& file : shipped_runs()) texts.push_back(read_file(file.path, kSmallFile));
  for (int i = 0; i < 1000; ++i)
    expect_only_user_errors(mutated(texts[below(random, texts.size())], random));
}

TEST(Robustness, MutatedModelsAndClusters) {
  Random random(2);
  std::vector<ShippedFile> models = shipped_models(), clusters = shipped_clusters();
  const Directory directory;
  const auto run = directory.write("run.toml", std::string(kSmallRun));
  for (int i = 0; i < 500; ++i) {
    directory.write(
        "m.toml",
        mutated(read_file(models[below(random, models.size())].path, kSmallFile), random));
    directory.write(
        "c.toml",
        mutated(read_file(clusters[below(random, clusters.size())].path, kSmallFile), random));
    const std::string base = directory.path().string();
    try {
      read_scenario(run, {"model=" + base + "/m.toml", "cluster=" + base + "/c.toml"});
    } catch (const UserError&) {
      // What it should do with most of these.
    }
  }
}

TEST(Robustness, MutatedHfConfigs) {
  Random random(3);
  const std::string config = R"({"downsample_ratio": 0.5, "force_image_size": 448,
    "llm_config": {"model_type": "internlm2", "hidden_size": 6144, "num_attention_heads": 48,
                   "num_hidden_layers": 48, "intermediate_size": 16384, "vocab_size": 92553},
    "vision_config": {"model_type": "intern_vit_6b", "hidden_size": 3200, "patch_size": 14,
                      "num_attention_heads": 25, "num_hidden_layers": 45, "qkv_bias": false,
                      "intermediate_size": 12800, "norm_type": "rms_norm",
                      "drop_path_rate": 0.4}})";
  const Directory directory;
  const auto run = directory.write("run.toml", kSmallRun);
  const std::string name = (directory.path() / "config.json").string();
  for (int i = 0; i < 500; ++i) {
    std::string changed = config;
    for (int j = 0; j < 3; ++j)
      changed[below(random, changed.size())] = "0123456789-\"{}[],:.eE \0xn"[below(random, 24)];
    directory.write("config.json", changed);
    try {
      read_scenario(run, {"model={llm={hf_config='" + name + "'},encoders=[{hf_config='" + name +
                          "',projector='mlp2',uneven_heads='pad'}]}"});
    } catch (const UserError& e) {
      EXPECT_FALSE(e.problems().empty());
    }
  }
}

TEST(Robustness, UnpleasantOverrides) {
  for (const char* key :
       {"model", "cluster", "model.llm", "model.encoders", "model.encoders.0", "data",
        "parallelism", "recompute", "strategy", "strategy.name", "given_times", "software",
        "calibration", "assumptions", "description", "seed"})
    for (const char* value : kUnpleasant)
      expect_only_user_errors(kSmallRun, {std::string(key) + "=" + value});
}

TEST(Robustness, FilesBasedOnThemselves) {
  const Directory directory;
  directory.write("a.toml", "base = 'b.toml'");
  directory.write("b.toml", "base = 'a.toml'");
  try {
    read_scenario(directory.write("run.toml", kSmallRun),
                  {"model=" + (directory.path() / "a.toml").string()});
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("a.toml is based on itself"), std::string::npos)
        << e.what();
  }
}

TEST(Robustness, NotEvenFiles) {
  EXPECT_THROW(read_scenario("/"), UserError);
  EXPECT_THROW(read_scenario(""), UserError);
  EXPECT_THROW(read_scenario(std::string(10'000, 'x')), UserError);
  const Directory directory;
  EXPECT_THROW(read_scenario(directory.write("run.toml", std::string(2 << 20, ' '))), UserError);
  EXPECT_THROW(read_scenario(directory.write("run.toml", std::string(1000, '['))), UserError);
}

}  // namespace
}  // namespace mllmsim::test
