#include "cost_models/calibrate/raw_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sim/base/errors.hpp"
#include "sim/base/files.hpp"
#include "sim/base/json_reader.hpp"
#include "sim/base/json_writer.hpp"

namespace mllmsim::calibrate {
namespace json = boost::json;
namespace {

std::string header_line(const Header& header, const std::string& date) {
  json::object fields;
  for (const auto& [name, value] : header.identity) fields[name] = value;
  fields["clock_mhz"] = header.clock_mhz;
  fields["date"] = date;
  return line_json(json::object{{"header", std::move(fields)}});
}

// Null if the line has none.
json::value header_of(const std::string& line) {
  try {
    const json::value value = parse_json(line, "");
    const json::object* object = value.if_object();
    return object && object->contains("header") ? object->at("header") : json::value();
  } catch (const UserError&) {
    return {};
  }
}

// The task's own fields, then the results: six digits, since timings repeat to three at best.
std::string measurement_line(const Task& task, const Summary& summary) {
  constexpr int kDigits = 6;
  json::object line = to_json(task);
  if (std::holds_alternative<OverlapTask>(task))
    line["slowdown"] = summary.median;
  else
    line["us"] = summary.median * 1e6;
  line["spread"] = summary.spread;
  line["samples"] = summary.samples;
  return line_json(line, kDigits);
}

}  // namespace

RawFile::RawFile(std::filesystem::path path, const Header& header, const std::string& date)
    : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail("cannot be opened for writing");
  try {
    read(header);
    if (::lseek(descriptor_, 0, SEEK_END) == 0) write_line(header_line(header, date));
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

RawFile::~RawFile() { ::close(descriptor_); }

void RawFile::read(const Header& header) {
  if (!std::filesystem::is_regular_file(path_)) return;  // /dev/stdout has nothing to continue
  const std::string text = read_file(path_, kLargeFile);
  std::size_t begin = 0;
  for (int number = 1; begin < text.size(); ++number) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;  // torn
    const std::string line = text.substr(begin, end - begin);
    const std::string where = fmt::format("{}:{}", path_.string(), number);
    if (number == 1) {
      check_header(line, header);
    } else {
      json::value value;
      try {
        value = parse_json(line, path_.string(), number);
      } catch (const UserError&) {
        // A block of a crashed file system may come back as zeros: at the end that is torn too.
        if (end + 1 == text.size()) break;
        throw;
      }
      measured_.insert(key(task_from_json(value, where)));
    }
    begin = end + 1;
  }
  if (begin < text.size() && ::ftruncate(descriptor_, static_cast<off_t>(begin)) != 0)
    fail("cannot be shortened to its last whole line");
}

void RawFile::check_header(const std::string& line, const Header& header) const {
  const std::string where = path_.string() + ":1";
  const json::value value = header_of(line);
  if (!value.is_object()) throw UserError(where, "", "not a file of raw measurements: no header");
  JsonObject found(value, where, "header");
  std::vector<Problem> problems;
  for (const auto& [name, expected] : header.identity) {
    const std::string was = found.has(name) ? found.text(name) : "nothing";
    if (was != expected)
      problems.push_back({where, "header." + name,
                          fmt::format("measured with \"{}\", but this is \"{}\"; use another --out",
                                      was, expected)});
  }
  if (!problems.empty()) throw UserError(std::move(problems));
}

void RawFile::append(const Task& task, const Summary& summary) {
  write_line(measurement_line(task, summary));
  measured_.insert(key(task));
}

void RawFile::write_line(const std::string& line) {
  const std::string text = line + '\n';
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(descriptor_, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("cannot be written");
    done += static_cast<std::size_t>(n);
  }
  // Pipes and /dev/stdout cannot be synchronised, and need not be.
  if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != EROFS) fail("cannot be written");
}

void RawFile::fail(const char* what) const {
  throw EnvironmentError(fmt::format("{}: {}: {}", path_.string(), what, std::strerror(errno)));
}

}  // namespace mllmsim::calibrate
