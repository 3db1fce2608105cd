// The files behind scenarios, each read once: a sweep resolves the same run, models, cluster and
// calibration thousands of times, on several threads, and all its points must see one version.
//
// Safe for concurrent use. What it hands out stays valid as long as it lives.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "cost_models/calibration/calibration.hpp"
#include "scenarios/tree/node.hpp"
#include "scenarios/tree/problems.hpp"
#include "sim/world/model.hpp"
#include "sim/world/software.hpp"
#include "strategies/data/samples.hpp"

namespace mllmsim::scenarios {

class InputFiles {
 public:
  InputFiles();
  ~InputFiles();

  // Both throw what parse_toml_file and read_calibration do.
  const Node& toml(const std::filesystem::path& file);
  const costs::Calibration& calibration(const std::filesystem::path& file);

  // A model, cluster or software with all it is based on, made by `load` the first time it is asked
  // for by this name. What cannot be loaded is not remembered: the next one is told why, too.
  std::shared_ptr<const Node> resolved(const std::string& name,
                                       const std::function<std::optional<Node>()>& load);

  // Of the contents of a calibration already read, or read now.
  std::string calibration_hash(const std::filesystem::path& file);

  // What `read` makes of a tree, which may be what it made of the last: points of a sweep share
  // most of what they say. Only what has no problems is remembered.
  template <class Part, class Read>
  Part read_once(const Node& tree, Problems& problems, const Read& read) {
    std::shared_ptr<const LastRead<Part>> last;
    {
      const std::scoped_lock lock(mutex_);
      last = std::get<std::shared_ptr<const LastRead<Part>>>(last_read_);
    }
    if (last && last->tree == tree) return last->part;
    const std::size_t before = problems.count();
    auto made = std::make_shared<LastRead<Part>>(tree, read());
    if (problems.count() == before) {
      const std::scoped_lock lock(mutex_);
      std::get<std::shared_ptr<const LastRead<Part>>>(last_read_) = made;
    }
    return made->part;
  }

  // A data set, made by `load` the first time it is asked for by this name.
  std::shared_ptr<const data::DataSet> data_set(const std::string& name,
                                                const std::function<data::DataSet()>& load);
  // Of its samples; "" for none.
  std::string data_hash(const std::shared_ptr<const data::DataSet>& set) const;

  // portable_name() and hash of the contents of every file and data set read so far.
  std::map<std::string, std::string> hashes() const;

 private:
  template <class Part>
  struct LastRead {
    LastRead(const Node& of, Part read) : tree(of), part(std::move(read)) {}
    Node tree;
    Part part;
  };
  struct Toml;
  struct Calibrated;
  struct Data;

  const Calibrated& calibrated(const std::filesystem::path& file);
  void forget_data_sets();

  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Toml>> tomls_;
  std::map<std::string, std::unique_ptr<Calibrated>> calibrations_;
  std::map<std::string, std::unique_ptr<Data>> data_sets_;
  std::map<std::string, std::shared_ptr<const Node>> resolved_;
  std::tuple<std::shared_ptr<const LastRead<Model>>, std::shared_ptr<const LastRead<Software>>>
      last_read_;
  std::uint64_t uses_ = 0;
};

}  // namespace mllmsim::scenarios
