#include "sim/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/utf8.hpp"

namespace mllmsim {
namespace {

bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  return character.size() == 1 ? first < 0x20U || first == 0x7FU
                               : first == 0xC2U && static_cast<unsigned char>(character[1]) < 0xA0U;
}

std::string escaped(std::string_view text, bool keep_line_ends) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const std::string_view taken = text.substr(0, std::max<std::size_t>(1, length));
    text.remove_prefix(taken.size());
    if ((length > 0 && !is_control(taken)) || (keep_line_ends && taken == "\n"))
      out += taken;
    else
      for (const char c : taken) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) { return escaped(text, false); }
std::string printable_lines(std::string_view text) { return escaped(text, true); }

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the dynamic programme suffice: swaps look two back.
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

namespace {

// Words that a slip of the keyboard seems to turn into each other, but that mean other things.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kOtherMeaning{
    {{"batch", "patch"},
     {"decoder", "encoder"},
     {"max", "min"},
     {"first", "last"},
     {"height", "weight"},
     {"lora", "norm"}}};

bool means_another_thing(std::string_view written, std::string_view known) {
  const auto words = [](std::string_view text) {
    std::vector<std::string_view> out;
    for (const std::string_view part : split(text, '_'))
      for (const std::string_view word : split(part, '-')) out.push_back(word);
    return out;
  };
  const auto a = words(written), b = words(known);
  // A slip leaves most of each word: "expert_size" is not "tensor_size".
  if (a.size() == b.size() && a.size() > 1)
    for (std::size_t i = 0; i < a.size(); ++i)
      if (2 * edit_distance(a[i], b[i]) >
          std::max<std::size_t>(2, std::max(a[i].size(), b[i].size())))
        return true;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    for (const auto& [one, other] : kOtherMeaning)
      if ((a[i] == one && b[i] == other) || (a[i] == other && b[i] == one)) return true;
  return false;
}

}  // namespace

std::string did_you_mean(std::string_view written, const std::vector<std::string>& known) {
  constexpr std::size_t kLongest = 100;  // longer is no slip of the keyboard
  if (written.size() > kLongest) return "";
  std::size_t nearest = std::max<std::size_t>(1, written.size() / 3) + 1;
  const std::string* best = nullptr;
  for (const std::string& name : known) {
    const std::size_t distance = edit_distance(written, name);
    if (distance >= nearest || distance >= name.size() || means_another_thing(written, name))
      continue;
    nearest = distance;
    best = &name;
  }
  return best ? fmt::format("; did you mean \"{}\"?", *best) : "";
}

std::string near_or_all(std::string_view written, const std::vector<std::string>& known) {
  std::string near = did_you_mean(written, known);
  return near.empty() && !known.empty() ? "; there are " + one_of(known) : near;
}

std::string one_of(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += i + 1 == names.size() ? " or " : ", ";
    out += fmt::format("\"{}\"", names[i]);
  }
  return out;
}

}  // namespace mllmsim
