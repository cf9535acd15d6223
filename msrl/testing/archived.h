// What an object would write into a checkpoint, as bytes.
#ifndef MSRL_TESTING_ARCHIVED_H_
#define MSRL_TESTING_ARCHIVED_H_

#include <span>
#include <string>

#include "msrl/files/state.h"

namespace msrl::testing {

template <typename T>
std::string Archived(const T& object) {
  TensorFileBuilder builder;
  Archive(builder).Save(object);
  return builder.Encode();
}

// UserError unless it is all of the object's and nothing else.
template <typename T>
void Unarchive(const std::string& bytes, T& object) {
  const TensorFile file = TensorFile::Parse(std::as_bytes(std::span(bytes)), "test");
  const Archive state(file);
  object.Visit(state);
  state.RequireAllUsed();
}

}  // namespace msrl::testing

#endif  // MSRL_TESTING_ARCHIVED_H_
