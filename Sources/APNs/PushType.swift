/// What kind of push a notification is (Apple, "Sending notification requests to APNs", `apns-push-type`).
///
/// `other` stands for a type that this table does not know; its name travels with the notification, which must then
/// say its topic itself.
package enum PushType: UInt8, CaseIterable, Sendable {
  case alert, background, voip, location, complication, fileprovider, mdm, liveactivity, pushtotalk, widgets, controls
  case other
}
